/** A server that asks for a password, which sshd does for accounts of the machine alone. Commands run as those of this process. */
import { spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import ssh2 from 'ssh2'

export interface PasswordServer {
  port: number
  stop(): Promise<void>
}

export async function startPasswordServer(
  method: 'password' | 'keyboard-interactive',
  password: string,
): Promise<PasswordServer> {
  const { privateKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'pkcs1', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
  })
  const clients = new Set<{ end(): void }>()
  const server = new ssh2.Server({ hostKeys: [privateKey] }, (client) => {
    clients.add(client)
    client.on('error', () => undefined)
    client.on('close', () => clients.delete(client))
    client.on('authentication', (context) => {
      if (context.method === 'password' && method === 'password' && context.password === password)
        return context.accept()
      if (context.method !== 'keyboard-interactive' || method !== 'keyboard-interactive')
        return context.reject([method])
      context.prompt([{ prompt: 'Password: ', echo: false }], (answers) => {
        if (answers.length === 1 && answers[0] === password) context.accept()
        else context.reject([method])
      })
    })
    client.on('session', (accept) => {
      accept().on('exec', (acceptExec, _reject, { command }) => {
        const channel = acceptExec()
        const child = spawn('/bin/sh', ['-c', command])
        channel.pipe(child.stdin)
        child.stdout.on('data', (bytes: Buffer) => channel.write(bytes))
        child.stderr.on('data', (bytes: Buffer) => channel.stderr.write(bytes))
        child.on('close', (code) => {
          channel.exit(code ?? 255)
          channel.end()
        })
      })
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    stop: () =>
      new Promise((resolve) => {
        for (const client of clients) client.end()
        server.close(() => resolve())
      }),
  }
}
