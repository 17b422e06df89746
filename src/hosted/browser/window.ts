// In a window that a frame has opened, when its end user is back from the target: the frame knows already. Where it can't be
// closed, its page says what to do.
window.close();
export {};
