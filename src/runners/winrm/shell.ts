/** A remote shell on a Windows host: created, one command, its input and output, deleted. */
import { shownUrl } from '../http/exchange.ts'
import {
  commandMessage,
  createShellMessage,
  deleteShellMessage,
  receiveMessage,
  sendMessage,
  terminateMessage,
} from './messages.ts'
import type { CommandTarget, Message, ShellOptions } from './messages.ts'
import { WinrmProblem, type Transport } from './transport.ts'
import { elementsIn, firstIn, readXml, type XmlElement } from './xml.ts'

export interface Received {
  pieces: { stream: 'stdout' | 'stderr'; bytes: Buffer }[]
  /** Of the command, when it has ended. */
  exitCode: number | undefined
}

/** Every function throws WinrmProblem, HttpProblem, or the reason of the signal when it is aborted. */
export interface RemoteShell {
  /** @returns the id of the shell */
  create(options: ShellOptions, signal: AbortSignal): Promise<string>
  /** @returns the id of the command */
  start(shellId: string, line: string, readsInput: boolean, signal: AbortSignal): Promise<string>
  send(target: CommandTarget, bytes: Buffer, isLast: boolean, signal: AbortSignal): Promise<void>
  /** Waits for output for some seconds; without any the list is empty. */
  receive(target: CommandTarget, signal: AbortSignal): Promise<Received>
  terminate(target: CommandTarget, signal: AbortSignal): Promise<void>
  remove(shellId: string, signal: AbortSignal): Promise<void>
}

/** Code of the fault that says: no output within the time of the operation. */
const OPERATION_TIMED_OUT = '2150858793'
const MAX_ID_CHARACTERS = 256
const MAX_SHOWN_CHARACTERS = 500
const MAX_EXIT_CODE = 0xffffffff

class Fault extends WinrmProblem {
  readonly code: string
  constructor(message: string, code: string) {
    super(message)
    this.code = code
  }
}

export function createRemoteShell(transport: Transport, url: URL): RemoteShell {
  const shown = shownUrl(url)
  const to = url.href

  async function ask(message: Message, signal: AbortSignal): Promise<XmlElement> {
    const { statusCode, body } = await transport.post(message.text, signal)
    const root = readAnswer(body, statusCode)
    const fault = firstIn(root, 'Fault')
    if (fault !== undefined) throw faultOf(fault)
    if (statusCode < 200 || statusCode > 299) throw notWinrm(statusCode)
    const relation = firstIn(root, 'RelatesTo')?.text.trim()
    if (relation !== undefined && relation.toLowerCase() !== message.id.toLowerCase()) {
      throw new WinrmProblem(`${shown} answered another message than the one that svc sent`)
    }
    return root
  }

  function readAnswer(body: Buffer, statusCode: number): XmlElement {
    let why: string
    try {
      const root = readXml(new TextDecoder('utf-8', { fatal: true }).decode(body))
      if (root.name === 'Envelope') return root
      why = 'it is not a SOAP envelope'
    } catch (error) {
      why = error instanceof Error ? (error.message.split('\n')[0] ?? '') : ''
    }
    if (statusCode < 200 || statusCode > 299) throw notWinrm(statusCode)
    throw new WinrmProblem(`${shown} sent an answer that svc cannot read: ${why.slice(0, MAX_SHOWN_CHARACTERS)}`)
  }

  function notWinrm(statusCode: number): WinrmProblem {
    return new WinrmProblem(
      `${shown} answered with HTTP status ${statusCode} and without a reason; check that WinRM listens there ("host", "port", "scheme")`,
    )
  }

  function faultOf(fault: XmlElement): Fault {
    const details = firstIn(fault, 'WSManFault')
    const code = details?.attributes.get('Code') ?? ''
    const reason = firstIn(fault, 'Message') ?? firstIn(fault, 'Text')
    const text = (reason === undefined ? '' : allText(reason)).replace(/\s+/g, ' ').trim()
    const number = code === '' ? '' : ` (code ${code.slice(0, 20)})`
    return new Fault(
      `${shown} refused: ${text === '' ? 'no reason given' : text.slice(0, MAX_SHOWN_CHARACTERS)}${number}`,
      code,
    )
  }

  function idOf(text: string | undefined, what: string): string {
    const id = text?.trim() ?? ''
    if (id === '' || id.length > MAX_ID_CHARACTERS) throw new WinrmProblem(`${shown} sent no valid id of the ${what}`)
    return id
  }

  return {
    async create(options, signal) {
      const root = await ask(createShellMessage(to, options), signal)
      const selector = [...elementsIn(root, 'Selector')].find(({ attributes }) => attributes.get('Name') === 'ShellId')
      return idOf((selector ?? firstIn(root, 'ShellId'))?.text, 'shell')
    },
    async start(shellId, line, readsInput, signal) {
      const root = await ask(commandMessage(to, shellId, line, readsInput), signal)
      return idOf(firstIn(root, 'CommandId')?.text, 'command')
    },
    async send(target, bytes, isLast, signal) {
      await ask(sendMessage(to, target, bytes, isLast), signal)
    },
    async receive(target, signal) {
      let root: XmlElement
      try {
        root = await ask(receiveMessage(to, target), signal)
      } catch (error) {
        if (error instanceof Fault && error.code === OPERATION_TIMED_OUT) return { pieces: [], exitCode: undefined }
        throw error
      }
      const isOfCommand = ({ attributes }: XmlElement): boolean => {
        const id = attributes.get('CommandId')
        if (id !== undefined && id.toLowerCase() !== target.commandId.toLowerCase()) {
          throw new WinrmProblem(`${shown} sent the output of another command`)
        }
        return true
      }
      const pieces = [...elementsIn(root, 'Stream')].filter(isOfCommand).flatMap(({ attributes, text }) => {
        const stream = attributes.get('Name')
        return stream === 'stdout' || stream === 'stderr'
          ? [{ stream, bytes: Buffer.from(text, 'base64') } as const]
          : []
      })
      const [state] = [...elementsIn(root, 'CommandState')].filter(isOfCommand)
      if (state === undefined || !(state.attributes.get('State') ?? '').endsWith('/Done')) {
        return { pieces, exitCode: undefined }
      }
      const code = firstIn(state, 'ExitCode')?.text.trim() ?? ''
      if (!/^-?\d{1,10}$/.test(code) || Math.abs(Number(code)) > MAX_EXIT_CODE) {
        throw new WinrmProblem(`${shown} sent no valid exit code of the command`)
      }
      return { pieces, exitCode: Number(code) }
    },
    async terminate(target, signal) {
      await ask(terminateMessage(to, target), signal)
    },
    async remove(shellId, signal) {
      await ask(deleteShellMessage(to, shellId), signal)
    },
  }
}

function allText({ text, children }: XmlElement): string {
  return [text, ...children.map(allText)].join(' ')
}
