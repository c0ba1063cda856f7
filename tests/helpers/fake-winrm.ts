/** A WinRM service of our own: NTLM and basic logins, shells and commands, which are real programs of this host. */
import { spawn, type ChildProcess } from 'node:child_process'
import { createHmac, randomBytes, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { md4 } from '../../src/runners/winrm/md4.ts'

export interface FakeRequest {
  /** Last part of the action: Create, Command, Receive, Send, Signal, Delete. */
  action: string
  body: string
  response: ServerResponse
  /** Sends an envelope that answers the request. */
  readonly reply: (body: string, statusCode?: number) => void
}

export interface FakeWinrm {
  port: number
  /** Actions in order of arrival. */
  actions: string[]
  /** Bodies of messages that create shells. */
  created: string[]
  /** Command lines. */
  lines: string[]
  /** What commands got as input. */
  inputs: Map<string, Buffer[]>
  /** Shells that were not deleted. */
  shells: Set<string>
  /** Logins that were finished. */
  logins: number
  /** Answers a request instead of the service when it returns true. */
  intercept: ((request: FakeRequest) => boolean) | undefined
  /** Program for a command line. Default: `/bin/sh -c <line>`. */
  program: (
    line: string,
    input: Promise<Buffer>,
  ) => { file: string; args: string[] } | Promise<{ file: string; args: string[] }>
  /** Drops all connections. */
  cut(): void
  stop(): Promise<void>
}

interface Command {
  shellId: string
  child: ChildProcess | undefined
  waiting: { stream: string; bytes: Buffer }[]
  exitCode: number | undefined
  wake: () => void
  endInput: () => void
}

export interface FakeOptions {
  tls?: { cert: string | Buffer; key: string | Buffer }
  username?: string
  domain?: string
  password?: string
  /** Offered in headers `WWW-Authenticate`. */
  offers?: string[]
}

const NAMESPACES =
  'xmlns:s="http://www.w3.org/2003/05/soap-envelope" xmlns:a="http://schemas.xmlsoap.org/ws/2004/08/addressing" ' +
  'xmlns:w="http://schemas.dmtf.org/wbem/wsman/1/wsman.xsd" ' +
  'xmlns:rsp="http://schemas.microsoft.com/wbem/wsman/1/windows/shell"'
/** How long the service waits for output. */
const RECEIVE_MS = 200

const utf16 = (value: string): Buffer => Buffer.from(value, 'utf16le')
const hmac = (key: Buffer, data: Buffer): Buffer => createHmac('md5', key).update(data).digest()

export async function startFakeWinrm(options: FakeOptions = {}): Promise<FakeWinrm> {
  const {
    username = 'admin',
    domain = '',
    password = 'Pa$$wörd',
    offers = ['Negotiate', 'Basic realm="WSMAN"'],
  } = options
  const commands = new Map<string, Command>()
  const sockets = new Map<Socket, { challenge?: Buffer; isLoggedIn: boolean }>()
  const fake: FakeWinrm = {
    port: 0,
    actions: [],
    created: [],
    lines: [],
    inputs: new Map(),
    shells: new Set(),
    logins: 0,
    intercept: undefined,
    program: (line) => ({ file: '/bin/sh', args: ['-c', line] }),
    cut() {
      for (const socket of sockets.keys()) socket.destroy()
    },
    async stop() {
      for (const { child } of commands.values()) child?.kill('SIGKILL')
      fake.cut()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  const listener = (request: IncomingMessage, response: ServerResponse): void => void serve(request, response)
  const server = options.tls === undefined ? createServer(listener) : createSecureServer(options.tls, listener)
  server.on(options.tls === undefined ? 'connection' : 'secureConnection', (socket: Socket) => {
    sockets.set(socket, { isLoggedIn: false })
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  fake.port = (server.address() as AddressInfo).port // it listens on a port

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request).catch(() => '')
    if (!logIn(request, response)) return
    const action = /<a:Action[^>]*>[^<]*\/([A-Za-z]+)<\/a:Action>/.exec(body)?.[1] ?? ''
    const id = /<a:MessageID>([^<]*)</.exec(body)?.[1] ?? ''
    fake.actions.push(action)
    const reply = (content: string, statusCode = 200): void => {
      response.writeHead(statusCode, { 'content-type': 'application/soap+xml;charset=UTF-8' })
      response.end(
        `<s:Envelope ${NAMESPACES}><s:Header><a:RelatesTo>${id}</a:RelatesTo></s:Header><s:Body>${content}</s:Body></s:Envelope>`,
      )
    }
    if (fake.intercept?.({ action, body, response, reply }) === true) return
    await answer(action, body, reply)
  }

  function logIn(request: IncomingMessage, response: ServerResponse): boolean {
    const state = sockets.get(request.socket) ?? { isLoggedIn: false }
    const refuse = (lines: string[]): false => {
      response.writeHead(401, { 'www-authenticate': lines, 'content-length': 0 }).end()
      return false
    }
    const [scheme, token = ''] = (request.headers.authorization ?? '').split(' ')
    if (scheme === undefined || scheme === '') return state.isLoggedIn || refuse(offers)
    if (!offers.some((offer) => offer.split(' ')[0] === scheme)) return refuse(offers)
    const bytes = Buffer.from(token, 'base64')
    if (scheme === 'Basic') {
      if (bytes.toString() !== `${username}:${password}`) return refuse(offers)
      fake.logins += 1
      return true
    }
    if (bytes.readUInt32LE(8) === 1) {
      state.challenge = randomBytes(8)
      return refuse([`${scheme} ${challengeOf(state.challenge).toString('base64')}`])
    }
    state.isLoggedIn = state.challenge !== undefined && isProven(bytes, state.challenge)
    if (!state.isLoggedIn) return refuse(offers)
    fake.logins += 1
    return true
  }

  function challengeOf(challenge: Buffer): Buffer {
    const pair = (id: number, value: Buffer): Buffer => {
      const head = Buffer.alloc(4)
      head.writeUInt16LE(id)
      head.writeUInt16LE(value.length, 2)
      return Buffer.concat([head, value])
    }
    const info = Buffer.concat([
      pair(2, utf16('DOMAIN')),
      pair(1, utf16('HOST')),
      pair(7, randomBytes(8)),
      pair(0, Buffer.alloc(0)),
    ])
    const message = Buffer.alloc(56)
    message.write('NTLMSSP\0', 'latin1')
    message.writeUInt32LE(2, 8)
    message.writeUInt32LE(56, 16)
    message.writeUInt32LE(0xa2898205, 20)
    challenge.copy(message, 24)
    message.writeUInt16LE(info.length, 40)
    message.writeUInt16LE(info.length, 42)
    message.writeUInt32LE(56, 44)
    return Buffer.concat([message, info])
  }

  function isProven(message: Buffer, challenge: Buffer): boolean {
    const part = (at: number): Buffer => {
      const offset = message.readUInt32LE(at + 4)
      return message.subarray(offset, offset + message.readUInt16LE(at))
    }
    if (part(28).toString('utf16le') !== domain || part(36).toString('utf16le') !== username) return false
    const key = hmac(md4(utf16(password)), utf16(username.toUpperCase() + domain))
    const response = part(20)
    return hmac(key, Buffer.concat([challenge, response.subarray(16)])).equals(response.subarray(0, 16))
  }

  async function answer(action: string, body: string, reply: FakeRequest['reply']): Promise<void> {
    const shellId = /Name="ShellId">([^<]*)</.exec(body)?.[1] ?? ''
    const commandId = /CommandId="([^"]*)"/.exec(body)?.[1] ?? ''
    if (action === 'Create') {
      const id = randomUUID().toUpperCase()
      fake.shells.add(id)
      fake.created.push(body)
      return reply(`<rsp:Shell><rsp:ShellId>${id}</rsp:ShellId></rsp:Shell>`)
    }
    if (!fake.shells.has(shellId)) return reply(fault('2150858843', 'The shell was not found on the server.'), 500)
    if (action === 'Command') {
      const id = randomUUID().toUpperCase()
      const line = unescape(/<rsp:Command>([\s\S]*?)<\/rsp:Command>/.exec(body)?.[1] ?? '')
      fake.lines.push(line)
      start(id, shellId, line)
      return reply(`<rsp:CommandResponse><rsp:CommandId>${id}</rsp:CommandId></rsp:CommandResponse>`)
    }
    const command = commands.get(commandId)
    switch (action) {
      case 'Receive':
        return command === undefined
          ? reply(fault('2150858843', 'No such command.'), 500)
          : await receive(commandId, command, reply)
      case 'Send': {
        const [, end = '', data = ''] = /CommandId="[^"]*"( End="true")?>([^<]*)</.exec(body) ?? []
        fake.inputs.get(commandId)?.push(Buffer.from(data, 'base64'))
        if (end !== '') command?.endInput()
        return reply('<rsp:SendResponse/>')
      }
      case 'Signal':
        if (command !== undefined) kill(command)
        return reply('<rsp:SignalResponse/>')
      case 'Delete':
        for (const one of commands.values()) if (one.shellId === shellId) kill(one)
        fake.shells.delete(shellId)
        return reply('')
      default:
        return reply(fault('1', 'Unknown action.'), 500)
    }
  }

  function start(id: string, shellId: string, line: string): void {
    const input = Promise.withResolvers<Buffer>()
    const command: Command = {
      shellId,
      child: undefined,
      waiting: [],
      exitCode: undefined,
      wake: () => undefined,
      endInput: () => input.resolve(Buffer.concat(fake.inputs.get(id) ?? [])),
    }
    fake.inputs.set(id, [])
    commands.set(id, command)
    void Promise.resolve(fake.program(line, input.promise)).then(({ file, args }) => {
      const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true })
      command.child = child
      for (const stream of ['stdout', 'stderr'] as const) {
        child[stream].on('data', (bytes: Buffer) => {
          command.waiting.push({ stream, bytes })
          command.wake()
        })
      }
      child.on('close', (code) => {
        command.exitCode = code ?? 1
        command.wake()
      })
    })
  }

  async function receive(id: string, command: Command, reply: FakeRequest['reply']): Promise<void> {
    if (command.waiting.length === 0 && command.exitCode === undefined) {
      await new Promise<void>((resolve) => {
        command.wake = resolve
        setTimeout(resolve, RECEIVE_MS)
      })
    }
    if (command.waiting.length === 0 && command.exitCode === undefined) {
      return reply(fault('2150858793', 'The WS-Management service cannot complete the operation within the time.'), 500)
    }
    const streams = command.waiting
      .splice(0)
      .map(
        ({ stream, bytes }) =>
          `<rsp:Stream Name="${stream}" CommandId="${id}">${bytes.toString('base64')}</rsp:Stream>`,
      )
    const kind = 'http://schemas.microsoft.com/wbem/wsman/1/windows/shell/CommandState'
    const state =
      command.exitCode === undefined
        ? `<rsp:CommandState CommandId="${id}" State="${kind}/Running"/>`
        : `<rsp:CommandState CommandId="${id}" State="${kind}/Done"><rsp:ExitCode>${command.exitCode}</rsp:ExitCode></rsp:CommandState>`
    reply(`<rsp:ReceiveResponse>${streams.join('')}${state}</rsp:ReceiveResponse>`)
  }

  return fake
}

function kill({ child }: Command): void {
  if (child?.pid === undefined || child.exitCode !== null) return
  try {
    process.kill(-child.pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
}

export function fault(code: string, message: string): string {
  return (
    `<s:Fault><s:Code><s:Value>s:Receiver</s:Value></s:Code><s:Reason><s:Text xml:lang="en-US">${message}</s:Text></s:Reason>` +
    `<s:Detail><f:WSManFault xmlns:f="http://schemas.microsoft.com/wbem/wsman/1/wsmanfault" Code="${code}"><f:Message>${message}</f:Message></f:WSManFault></s:Detail></s:Fault>`
  )
}

function unescape(value: string): string {
  const names: Record<string, string> = { lt: '<', gt: '>', quot: '"', apos: "'", '#13': '\r', '#10': '\n', '#9': '\t' }
  return value
    .replace(/&(lt|gt|quot|apos|#13|#10|#9);/g, (_, name: string) => names[name] ?? '')
    .replaceAll('&amp;', '&')
}
