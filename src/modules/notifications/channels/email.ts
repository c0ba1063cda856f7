/** Mail: by SMTP, or handed to a sendmail program. */
import { hostname } from 'node:os'
import type { SendMailOptions } from 'nodemailer'
import { findMailProgram, MAIL_PROGRAMS } from '../../../runners/index.ts'
import {
  SendFailure,
  shortened,
  UrlProblem,
  textIn,
  type Channel,
  type Notice,
  type SendTools,
  type Settings,
} from './channel.ts'
import { cut, escapeHtml, oneLine, plainBody } from './text.ts'

const MAX_SUBJECT_CHARS = 200
const MAX_RECIPIENTS = 50
const CONNECT_MS = 10_000
const address = { type: 'string', minLength: 1, maxLength: 320 }

export const email: Channel = {
  kind: 'email',
  settings: {
    to: {
      type: ['array', 'string'],
      minItems: 1,
      maxItems: MAX_RECIPIENTS,
      minLength: 1,
      items: address,
      description: 'Recipients; a text may have several, with commas.',
    },
    from: { ...address, description: 'Default: svc at the name of this host.' },
    host: { type: 'string', minLength: 1, description: 'SMTP server. Without it, a sendmail program takes the mail.' },
    port: { type: 'integer', minimum: 1, maximum: 65_535, description: 'Default: 587; with `security: tls` 465.' },
    security: {
      enum: ['starttls', 'tls', 'none'],
      description: 'Default: `starttls`, which the server must offer. `none` only inside of a trusted network.',
    },
    user: { type: 'string', minLength: 1, description: 'Account at the SMTP server.' },
    password: { type: 'string', minLength: 1 },
    verify_certificate: { type: 'boolean', description: 'Default: true.' },
    sendmail: { type: 'string', minLength: 1, description: `Program: ${MAIL_PROGRAMS.join(', ')}; a name or a path.` },
  },
  required: [],
  secrets: ['password'],
  schemes: ['mailto', 'mailtos'],
  fromUrl({ scheme, user, password, host, port, query }) {
    if (host === '') throw new UrlProblem('must be mailtos://USER:PASSWORD@HOST?to=ADDRESS')
    const server = query.get('smtp') ?? host
    const own = user === '' ? undefined : user.includes('@') ? user : `${user}@${host}`
    const to = query.get('to') ?? own
    if (to === undefined) throw new UrlProblem('needs recipients: ?to=ADDRESS')
    const mode = query.get('mode') ?? (scheme === 'mailtos' ? 'starttls' : 'insecure')
    const modes: Readonly<Record<string, string>> = { insecure: 'none', starttls: 'starttls', ssl: 'tls' }
    const security = modes[mode]
    if (security === undefined) throw new UrlProblem('has a mode that is not insecure, starttls or ssl')
    const from = query.get('from') ?? own
    return {
      host: server,
      ...(port === undefined ? { port: security === 'tls' ? 465 : security === 'none' ? 25 : 587 } : { port }),
      security,
      to: to.split(','),
      ...(from === undefined ? {} : { from }),
      ...(password === '' ? {} : { user: query.get('user') ?? user, password }),
      ...(query.get('verify') === 'no' ? { verify_certificate: false } : {}),
    }
  },
  hasRecipients: true,
  isDigested: true,
  async send(notice, settings, tools) {
    const mail = mailOf(notice, settings)
    return textIn(settings, 'host') === '' ? bySendmail(mail, settings, tools) : bySmtp(mail, settings, tools)
  },
}

interface Mail extends SendMailOptions {
  from: string
  to: string[]
  messageId: string
}

/** @throws SendFailure */
function mailOf({ id, to, title, text, facts, output, link, timestamp, ...notice }: Notice, settings: Settings): Mail {
  const recipients = to.length > 0 ? to : listOf(settings['to'])
  if (recipients.length === 0) throw new SendFailure('the mail has no recipient: set "to" of the destination', true)
  if (recipients.length > MAX_RECIPIENTS) throw new SendFailure(`more than ${MAX_RECIPIENTS} recipients`, true)
  const from = addressIn(textIn(settings, 'from') || `svc@${hostname()}`)
  const domain = from.slice(from.lastIndexOf('@') + 1)
  return {
    from,
    to: recipients.map(addressIn),
    subject: cut(oneLine(title), MAX_SUBJECT_CHARS),
    messageId: `<${id}@${/^[A-Za-z0-9.-]+$/.test(domain) ? domain : 'svc.invalid'}>`,
    date: new Date(timestamp),
    text: `${title}\n\n${plainBody({ id, to, title, text, facts, output, link, timestamp, ...notice })}\n`,
    html: htmlOf(title, text, facts, output, link),
    headers: { 'Auto-Submitted': 'auto-generated', 'X-Svc-Notification': id },
    // The values are content, never file names or URLs to read.
    disableFileAccess: true,
    disableUrlAccess: true,
  }
}

function htmlOf(title: string, text: string, facts: Notice['facts'], output: string, link: string): string {
  const rows = facts
    .map(([label, value]) => `<tr><td>${escapeHtml(label)}</td><td>${escapeHtml(value)}</td></tr>`)
    .join('')
  const body =
    text === ''
      ? `<table>${rows}</table>${output === '' ? '' : `<pre>${escapeHtml(output)}</pre>`}`
      : `<p style="white-space:pre-wrap">${escapeHtml(text)}</p>`
  const more = link === '' ? '' : `<p><a href="${escapeHtml(link)}">Open in svc</a></p>`
  return `<!doctype html><html><body><h3>${escapeHtml(title)}</h3>${body}${more}</body></html>`
}

function listOf(given: unknown): string[] {
  const texts = typeof given === 'string' ? given.split(',') : Array.isArray(given) ? given.map(String) : []
  return texts.map((text) => text.trim()).filter((text) => text !== '')
}

/** One plain address. A name, a list or a line end could add recipients or headers. @throws SendFailure */
export function addressIn(given: string): string {
  const text = given.trim()
  if (isAddress(text)) return text
  throw new SendFailure(`"${cut(oneLine(text), 100)}" is not an address such as ops@example.org`, true)
}

export const isAddress = (text: string): boolean =>
  text.length <= 320 && /^[^\s\p{C}<>()[\],;:\\"@]+@[^\s\p{C}<>()[\],;:\\"@/]+$/u.test(text) && !text.startsWith('-')

async function bySmtp(mail: Mail, settings: Settings, { signal }: SendTools): Promise<string> {
  const { createTransport } = await import('./mailer.ts')
  const security = textIn(settings, 'security') || 'starttls'
  const port = Number(settings['port'] ?? (security === 'tls' ? 465 : 587))
  const user = textIn(settings, 'user')
  const transport = createTransport({
    host: textIn(settings, 'host'),
    port,
    secure: security === 'tls',
    requireTLS: security === 'starttls',
    ignoreTLS: security === 'none',
    ...(user === '' ? {} : { auth: { user, pass: textIn(settings, 'password') } }),
    tls: { rejectUnauthorized: settings['verify_certificate'] !== false },
    connectionTimeout: CONNECT_MS,
    greetingTimeout: CONNECT_MS,
    socketTimeout: CONNECT_MS,
    dnsTimeout: CONNECT_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(new SendFailure('no answer in time from the SMTP server')), {
      once: true,
    })
  })
  aborted.catch(() => undefined)
  try {
    const { response } = await Promise.race([transport.sendMail(mail), aborted])
    return shortened(response)
  } catch (error) {
    if (error instanceof SendFailure) throw error
    throw smtpFailure(error)
  } finally {
    transport.close()
  }
}

/** Only what the message itself causes is final: unknown recipients, a refused content. */
function smtpFailure(error: unknown): SendFailure {
  const { message, responseCode, code } = error as Error & { responseCode?: number; code?: string }
  const isFinal = (code === 'EENVELOPE' || code === 'EMESSAGE') && responseCode !== undefined && responseCode >= 500
  return new SendFailure(shortened(message), isFinal)
}

async function bySendmail(mail: Mail, settings: Settings, { run, signal }: SendTools): Promise<string> {
  const found = findMailProgram(textIn(settings, 'sendmail'), process.env['PATH'] ?? '')
  if ('problem' in found) {
    throw new SendFailure(
      found.problem === 'unknown'
        ? `"sendmail" of the destination must be one of ${MAIL_PROGRAMS.join(', ')}`
        : `the program ${found.name} is not installed on this host; install it, or set "host" to an SMTP server`,
    )
  }
  const { createTransport } = await import('./mailer.ts')
  const composed = await createTransport({ streamTransport: true, buffer: true, newline: 'unix' }).sendMail(mail)
  const args = ['-i', '-f', mail.from, '--', ...mail.to]
  try {
    const { code, error } = await run({ file: found.path, args, stdin: composed.message as Buffer })
    if (code === 0) return `handed to ${found.path}`
    throw new SendFailure(`${found.path} failed with exit code ${code}${error === '' ? '' : `: ${shortened(error)}`}`)
  } catch (error) {
    if (signal.aborted) throw new SendFailure(`${found.path} did not end in time`)
    if (error instanceof SendFailure) throw error
    throw new SendFailure(shortened(error instanceof Error ? error.message : String(error)))
  }
}
