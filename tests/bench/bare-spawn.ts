/**
 * The reference: `child_process.spawn` of the same command in an otherwise empty Node process. Prints JSON.
 * `bare-spawn.ts <count> <at once> [<script>]`: with a path it starts that instead.
 */
import { spawn } from 'node:child_process'

const [count = 500, atOnce = 1] = process.argv.slice(2, 4).map(Number)
const script = process.argv[4]
const [file, parameters] = script === undefined ? ['/bin/sh', ['-c', 'echo hi']] : [script, ['--name=hi']]
const latencies: number[] = []
let left = count
const started = performance.now()
await Promise.all(
  Array.from({ length: atOnce }, async () => {
    while (left-- > 0) {
      const at = performance.now()
      await new Promise((resolve) => {
        const child = spawn(file, parameters)
        child.stdout.on('data', () => undefined)
        child.stderr.on('data', () => undefined)
        child.once('close', resolve)
      })
      latencies.push(performance.now() - at)
    }
  }),
)
process.stdout.write(JSON.stringify({ rate: count / ((performance.now() - started) / 1000), latencies }))
