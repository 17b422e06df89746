// Runs in a window that a frame has opened, when the end user returns from the target. The frame already knows the result. If the
// window can't be closed by script alone, its page has a button.
import "./closable.ts";

window.close();
