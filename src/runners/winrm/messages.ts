/** The messages of a remote shell (MS-WSMV), as text. */
import { randomUUID } from 'node:crypto'
import { xmlText } from './xml.ts'

const SHELL = 'http://schemas.microsoft.com/wbem/wsman/1/windows/shell'
const TRANSFER = 'http://schemas.xmlsoap.org/ws/2004/09/transfer'
const ADDRESSING = 'http://schemas.xmlsoap.org/ws/2004/08/addressing'

/** Bytes of one answer that svc asks for; hosts send at most 500 KiB. */
const MAX_ENVELOPE_BYTES = 512_000
/** Seconds that a host waits for output before it answers that there is none. */
const OPERATION_SECONDS = 20
/** Seconds after which a host removes a shell that nobody reads: when svc cannot delete it. */
const IDLE_SECONDS = 180
const UTF8_CODE_PAGE = 65_001

export interface Message {
  /** The answer names it. */
  id: string
  text: string
}

export interface ShellOptions {
  /** Empty: the profile folder of the account. */
  cwd: string
  env: Readonly<Record<string, string>>
}

export interface CommandTarget {
  shellId: string
  commandId: string
}

export function createShellMessage(to: string, { cwd, env }: ShellOptions): Message {
  const variables = Object.entries(env).map(
    ([name, value]) => `<rsp:Variable Name="${xmlText(name)}">${xmlText(value)}</rsp:Variable>`,
  )
  const body = [
    '<rsp:Shell><rsp:InputStreams>stdin</rsp:InputStreams><rsp:OutputStreams>stdout stderr</rsp:OutputStreams>',
    cwd === '' ? '' : `<rsp:WorkingDirectory>${xmlText(cwd)}</rsp:WorkingDirectory>`,
    `<rsp:IdleTimeOut>PT${IDLE_SECONDS}S</rsp:IdleTimeOut>`,
    variables.length === 0 ? '' : `<rsp:Environment>${variables.join('')}</rsp:Environment>`,
    '</rsp:Shell>',
  ].join('')
  return message(to, `${TRANSFER}/Create`, body, {
    options: { WINRS_NOPROFILE: 'FALSE', WINRS_CODEPAGE: String(UTF8_CODE_PAGE) },
  })
}

/** @param readsInput whether the command gets input by `sendMessage` */
export function commandMessage(to: string, shellId: string, line: string, readsInput: boolean): Message {
  const body = `<rsp:CommandLine><rsp:Command>${xmlText(line)}</rsp:Command></rsp:CommandLine>`
  const options = { WINRS_CONSOLEMODE_STDIN: readsInput ? 'FALSE' : 'TRUE', WINRS_SKIP_CMD_SHELL: 'FALSE' }
  return message(to, `${SHELL}/Command`, body, { shellId, options })
}

export function receiveMessage(to: string, { shellId, commandId }: CommandTarget): Message {
  const stream = `<rsp:DesiredStream CommandId="${xmlText(commandId)}">stdout stderr</rsp:DesiredStream>`
  return message(to, `${SHELL}/Receive`, `<rsp:Receive>${stream}</rsp:Receive>`, { shellId })
}

export function sendMessage(to: string, target: CommandTarget, bytes: Buffer, isLast: boolean): Message {
  const end = isLast ? ' End="true"' : ''
  const stream = `<rsp:Stream Name="stdin" CommandId="${xmlText(target.commandId)}"${end}>${bytes.toString('base64')}</rsp:Stream>`
  return message(to, `${SHELL}/Send`, `<rsp:Send>${stream}</rsp:Send>`, target)
}

/** Ends the command and its processes. */
export function terminateMessage(to: string, { shellId, commandId }: CommandTarget): Message {
  const code = `<rsp:Code>${SHELL}/signal/terminate</rsp:Code>`
  const body = `<rsp:Signal CommandId="${xmlText(commandId)}">${code}</rsp:Signal>`
  return message(to, `${SHELL}/Signal`, body, { shellId })
}

export function deleteShellMessage(to: string, shellId: string): Message {
  return message(to, `${TRANSFER}/Delete`, '', { shellId })
}

function message(
  to: string,
  action: string,
  body: string,
  { shellId, options = {} }: { shellId?: string; options?: Record<string, string> },
): Message {
  const id = `uuid:${randomUUID().toUpperCase()}`
  const must = 's:mustUnderstand="true"'
  const set = Object.entries(options).map(([name, value]) => `<w:Option Name="${name}">${value}</w:Option>`)
  const selectors =
    shellId === undefined
      ? ''
      : `<w:SelectorSet><w:Selector Name="ShellId">${xmlText(shellId)}</w:Selector></w:SelectorSet>`
  const text = [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope"',
    ` xmlns:a="${ADDRESSING}"`,
    ' xmlns:w="http://schemas.dmtf.org/wbem/wsman/1/wsman.xsd"',
    ' xmlns:p="http://schemas.microsoft.com/wbem/wsman/1/wsman.xsd"',
    ` xmlns:rsp="${SHELL}"><s:Header>`,
    `<a:To>${xmlText(to)}</a:To>`,
    `<a:ReplyTo><a:Address ${must}>${ADDRESSING}/role/anonymous</a:Address></a:ReplyTo>`,
    `<a:Action ${must}>${action}</a:Action>`,
    `<a:MessageID>${id}</a:MessageID>`,
    `<w:MaxEnvelopeSize ${must}>${MAX_ENVELOPE_BYTES}</w:MaxEnvelopeSize>`,
    '<w:Locale xml:lang="en-US" s:mustUnderstand="false"/><p:DataLocale xml:lang="en-US" s:mustUnderstand="false"/>',
    `<w:OperationTimeout>PT${OPERATION_SECONDS}S</w:OperationTimeout>`,
    `<w:ResourceURI ${must}>${SHELL}/cmd</w:ResourceURI>`,
    selectors,
    set.length === 0 ? '' : `<w:OptionSet>${set.join('')}</w:OptionSet>`,
    `</s:Header><s:Body>${body}</s:Body></s:Envelope>`,
  ]
  return { id, text: text.join('') }
}
