/** Shared by the server and the commands that signal it. */

/** A key press may reach the server twice, from the terminal and from its parent process; within this time it counts once. */
export const SAME_SIGNAL_MS = 1000
