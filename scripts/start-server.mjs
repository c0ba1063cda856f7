/** Second half of `npm start`, for a Node that understands it. */
import { join } from 'node:path'
import { build } from './build.mjs'
import { ensureInstalled, findNode, main, root, run, withProgress } from './lib.mjs'

await main(async () => {
  await ensureInstalled()
  await build({ during: (work) => withProgress('Building', work) })
  return run(findNode(), [join(root, 'dist', 'cli.js'), 'serve', ...process.argv.slice(2)], {
    cwd: process.cwd(),
    // The server ends with this process, even if that gets KILL.
    env: { SVC_WRAPPER_PID: String(process.pid) },
  })
})
