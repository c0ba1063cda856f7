/**
 * Program behind `core.sendmail`: composes a mail and hands it to a sendmail program. `sendmail.sh` of the core pack
 * starts it under the account of the action, so that it can attach files that this account can read.
 *
 * Standard input, NUL-terminated: program or `None`, sender, recipients, subject, whether to send an empty body (1 or
 * 0), content type, body, files to attach. Exit code 0: handed over, or no mail to send; 1: failure; 2: bad arguments.
 */
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { hostname } from 'node:os'
import { basename } from 'node:path'
import { text } from 'node:stream/consumers'
import { createTransport, type SendMailOptions } from 'nodemailer'
import { codeOf } from '../lib/process/index.ts'
import { findMailProgram, MAIL_PROGRAMS } from './mail-programs.ts'

const MAX_ATTACHMENTS = 100
const MAX_ATTACHED_BYTES = 50 * 1024 * 1024

class ArgumentProblem extends Error {}

async function main(given: readonly string[]): Promise<string> {
  const [binary = '', from = '', to = '', subject = '', sendEmptyBody = '', contentType = '', body = '', files = ''] =
    given
  const recipients = listOf(to).map((address) => withHost('to', address))
  if (recipients.length === 0) throw new ArgumentProblem('The parameter "to" is empty: the mail has no recipient.')
  if (body.trim() === '' && sendEmptyBody !== '1') return 'The body is empty: no mail was sent.'
  const mail: SendMailOptions = {
    from: withHost('from', from),
    to: recipients,
    subject: oneLine('subject', subject),
    ...bodyOf(contentType, body),
    attachments: await attachmentsOf(listOf(files)),
    // The values are content, never file names or URLs to read.
    disableFileAccess: true,
    disableUrlAccess: true,
  }
  const transport = createTransport({ sendmail: true, newline: 'unix', path: findProgram(binary) })
  const { messageId } = await transport.sendMail(mail)
  return `The mail ${messageId} was handed to sendmail for ${recipients.join(', ')}.`
}

function listOf(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
}

/** A line end in a header would start another header. */
function oneLine(name: string, text: string): string {
  if (/\p{Cc}/u.test(text)) throw new ArgumentProblem(`The parameter "${name}" must be a single line of text.`)
  return text
}

/** Names of local accounts get this host's name. */
function withHost(name: string, address: string): string {
  const text = oneLine(name, address).trim()
  if (text === '') throw new ArgumentProblem(`The parameter "${name}" is empty.`)
  return text.includes('@') ? text : `${text}@${hostname()}`
}

function bodyOf(contentType: string, body: string): SendMailOptions {
  const type = (oneLine('content_type', contentType).split(';')[0] ?? '').trim().toLowerCase()
  if (type === '' || type === 'text/html') return { html: body }
  if (type === 'text/plain') return { text: body }
  if (!/^[\w.+-]+\/[\w.+-]+$/.test(type)) {
    throw new ArgumentProblem('The parameter "content_type" must be a content type such as text/plain.')
  }
  return { alternatives: [{ contentType: type, content: body }] }
}

async function attachmentsOf(paths: readonly string[]): Promise<NonNullable<SendMailOptions['attachments']>> {
  if (paths.length > MAX_ATTACHMENTS) {
    throw new ArgumentProblem(`The parameter "attachments" names more than ${MAX_ATTACHMENTS} files.`)
  }
  const attachments: { filename: string; content: Buffer }[] = []
  let left = MAX_ATTACHED_BYTES
  for (const path of paths) {
    const content = await readAttachment(path, left)
    left -= content.length
    attachments.push({ filename: oneLine('attachments', basename(path)), content })
  }
  return attachments
}

async function readAttachment(path: string, maxBytes: number): Promise<Buffer> {
  const cannot = (why: string): ArgumentProblem => new ArgumentProblem(`The file "${path}" cannot be attached: ${why}.`)
  try {
    // Non-blocking: a named pipe without a writer would block.
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      const status = await file.stat()
      if (!status.isFile()) throw cannot('it is not a file')
      if (status.size > maxBytes) throw cannot(`all attachments together are longer than ${MAX_ATTACHED_BYTES} bytes`)
      const { buffer, bytesRead } = await file.read(Buffer.alloc(status.size), 0, status.size, 0)
      return buffer.subarray(0, bytesRead)
    } finally {
      await file.close()
    }
  } catch (error) {
    if (error instanceof ArgumentProblem) throw error
    const code = codeOf(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') throw cannot('it does not exist')
    throw cannot(code === 'EACCES' ? 'the account of the action cannot read it' : 'the system refused to read it')
  }
}

function findProgram(given: string): string {
  const found = findMailProgram(given === 'None' ? '' : given, process.env['PATH'] ?? '')
  if ('path' in found) return found.path
  throw new ArgumentProblem(
    found.problem === 'unknown'
      ? `The parameter "sendmail_binary" must be one of ${MAIL_PROGRAMS.join(', ')}.`
      : `The program ${found.name} is not installed on this host: install it, or set "sendmail_binary".`,
  )
}

text(process.stdin)
  .then((input) => main(input.split('\0').slice(0, -1)))
  .then(
    (outcome) => process.stdout.write(`${outcome}\n`),
    (error: unknown) => {
      process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
      process.exitCode = error instanceof ArgumentProblem ? 2 : 1
    },
  )
