/** The reference: `child_process.spawn` of the same command in an otherwise empty Node process. Prints JSON. */
import { spawn } from 'node:child_process'

const [count = 500, atOnce = 1] = process.argv.slice(2).map(Number)
const latencies: number[] = []
let left = count
const started = performance.now()
await Promise.all(
  Array.from({ length: atOnce }, async () => {
    while (left-- > 0) {
      const at = performance.now()
      await new Promise((resolve) => {
        const child = spawn('/bin/sh', ['-c', 'echo hi'])
        child.stdout.on('data', () => undefined)
        child.stderr.on('data', () => undefined)
        child.once('close', resolve)
      })
      latencies.push(performance.now() - at)
    }
  }),
)
process.stdout.write(JSON.stringify({ rate: count / ((performance.now() - started) / 1000), latencies }))
