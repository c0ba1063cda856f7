/** Many clients of one execution's stream. Prints how many of them received every line, in order, and the end. */
import { Agent, get } from 'node:http'

const [port = 0, , count = 1, lines = 1] = process.argv.slice(2).map(Number)
const id = process.argv[3] ?? ''
const agent = new Agent({ keepAlive: false, maxSockets: Infinity })

function follow(): Promise<boolean> {
  return new Promise((resolve) => {
    get({ host: '127.0.0.1', port, path: `/stream/v1/executions/${id}/output`, agent }, (response) => {
      let next = 0
      let rest = ''
      let isInOrder = true
      response.setEncoding('utf8').on('data', (text: string) => {
        rest += text
        const end = rest.lastIndexOf('\n\n')
        if (end === -1) return
        for (const [, n] of rest.slice(0, end).matchAll(/line (\d{6})\\n/g)) isInOrder &&= Number(n) === next++
        if (rest.includes('event: EOF')) isInOrder &&= next === lines
        rest = rest.slice(end + 2)
      })
      response.on('end', () => resolve(isInOrder && next === lines))
      response.on('error', () => resolve(false))
    }).once('error', () => resolve(false))
  })
}

const complete = await Promise.all(Array.from({ length: count }, follow))
process.stdout.write(String(complete.filter(Boolean).length))
