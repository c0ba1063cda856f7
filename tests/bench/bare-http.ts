/** A server that reads a JSON body and answers 202 with it, and keeps nothing: the least that Node can do for a webhook. */
import { createServer } from 'node:http'

const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const body = Buffer.from(JSON.stringify(JSON.parse(Buffer.concat(chunks).toString())))
    response.writeHead(202, { 'Content-Type': 'application/json', 'Content-Length': body.length }).end(body)
  })
}).listen(0, '127.0.0.1', () => {
  const address = server.address()
  process.stdout.write(`${typeof address === 'object' && address !== null ? address.port : 0}\n`)
})
