/** What the server and those who signal it agree about. */

/** One key press reaches the server from the terminal, and once more from whatever started it: within this time they are one. */
export const SAME_SIGNAL_MS = 1000
