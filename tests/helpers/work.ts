/** How much work something is, on a machine that does other things as well. */

/** Milliseconds that this thread has computed so far. Those in which it waits for its turn do not count. */
export function computedMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}
