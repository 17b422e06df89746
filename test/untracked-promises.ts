/**
 * Imported before node:test is. Its runner follows what a test starts, to say which test an error is of that nobody handles; each promise, too, and
 * the garbage collector has to tell it when that one is gone: a million cost a second, and 40 ms without. So it follows timers, sockets and
 * the like alone. A rejection that nobody handles fails the run as before, and is printed without its test's name; with a process of its
 * own (`npm test -- domain/totp`), a file has that, too.
 */
const hooks = process.getBuiltinModule("node:async_hooks");
const { createHook } = hooks;
hooks.createHook = (callbacks) => createHook({ ...callbacks, trackPromises: false });
// The runner takes the function when it is loaded.
process.getBuiltinModule("node:test");
hooks.createHook = createHook;

process.on("unhandledRejection", (error) => console.error("Nobody has handled a rejection:", error));
