/**
 * Certificates of the listeners (`use_ssl`, `cert`, `key`; contract 01, 1.3). Turns files into the input of a TLS
 * server, or into a description of their problems.
 */
import { X509Certificate, createPrivateKey, randomBytes, type KeyObject } from 'node:crypto'
import { createSecureContext, type SecureContextOptions } from 'node:tls'
import { readBoundedFile } from '../lib/files/index.ts'
import type { Log } from '../lib/log/index.ts'
import type { Surface } from './route.ts'
import { shown } from '../lib/text/index.ts'

/** A certificate with its key, checked. */
export interface TlsIdentity {
  /** PEM: the certificate, then its chain. */
  cert: Buffer
  key: Buffer
  /** Expiry of the certificate. */
  validTo: Date
  /** Warnings for operators; each begins with the option. */
  warnings: string[]
}

/** An identity, or its problems: lines that begin with the option, such as `auth.cert: …`. */
export type TlsReading = { identity: TlsIdentity } | { problems: string[] }

/** The files that a section of the configuration names. */
export interface TlsFiles {
  cert: string
  key: string
}

/** With new ticket keys: a client that resumes a session would not see a renewed certificate. */
export function secureContext({ cert, key }: TlsIdentity): SecureContextOptions & { ticketKeys: Buffer } {
  return { cert, key, minVersion: 'TLSv1.2', ticketKeys: randomBytes(48) }
}

const MAX_FILE_BYTES = 1_048_576

/** Never throws because of the content of the files. */
export async function readTlsIdentity(section: Surface, files: TlsFiles, now = new Date()): Promise<TlsReading> {
  const [certFile, keyFile] = await Promise.all([
    readBoundedFile(files.cert, MAX_FILE_BYTES),
    readBoundedFile(files.key, MAX_FILE_BYTES),
  ])
  const certificates = 'problem' in certFile ? certFile.problem : readCertificates(certFile.bytes)
  const key = 'problem' in keyFile ? keyFile.problem : readKey(keyFile.bytes)
  if ('problem' in certFile || typeof certificates === 'string' || 'problem' in keyFile || typeof key === 'string') {
    return {
      problems: [
        ...(typeof certificates === 'string' ? [`${section}.cert: ${shown(files.cert)} ${certificates}`] : []),
        ...(typeof key === 'string' ? [`${section}.key: ${shown(files.key)} ${key}`] : []),
      ],
    }
  }

  const [own, ...chain] = certificates
  if (own === undefined || !own.checkPrivateKey(key)) {
    const isLater = chain.some((later) => later.checkPrivateKey(key))
    const why = isLater
      ? `belongs to a later certificate of ${shown(files.cert)} (${section}.cert); the server's own must be the first`
      : `is not the key of the certificate in ${shown(files.cert)} (${section}.cert)`
    return { problems: [`${section}.key: ${shown(files.key)} ${why}`] }
  }
  const identity: TlsIdentity = { cert: certFile.bytes, key: keyFile.bytes, validTo: own.validToDate, warnings: [] }
  try {
    createSecureContext(secureContext(identity))
  } catch (error) {
    return { problems: [`${section}.cert: ${shown(files.cert)} cannot be used: ${libraryReason(error)}`] }
  }
  if (own.validToDate <= now) {
    identity.warnings.push(
      `${section}.cert: the certificate expired on ${own.validToDate.toISOString()}; clients refuse it`,
    )
  } else if (own.validFromDate > now) {
    identity.warnings.push(
      `${section}.cert: the certificate is not valid before ${own.validFromDate.toISOString()}; clients refuse it`,
    )
  }
  if ((keyFile.mode & 0o007) !== 0) {
    identity.warnings.push(
      `${section}.key: ${shown(files.key)} is accessible to all accounts of this machine; restrict it with chmod o-rwx`,
    )
  }
  return { identity }
}

const certificateBlock = /-----BEGIN ((?:X509 |TRUSTED )?CERTIFICATE)-----[^]*?-----END \1-----/g

/** All certificates of a file, or the problem as the rest of a sentence. */
function readCertificates(bytes: Buffer): X509Certificate[] | string {
  const blocks = bytes.toString('latin1').match(certificateBlock)
  if (blocks === null) return 'holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)'
  try {
    return blocks.map((block) => new X509Certificate(block))
  } catch (error) {
    return `holds a certificate that cannot be read: ${libraryReason(error)}`
  }
}

function readKey(bytes: Buffer): KeyObject | string {
  const text = bytes.toString('latin1')
  if (!/-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----/.test(text)) {
    return 'holds no private key in PEM form (-----BEGIN PRIVATE KEY-----)'
  }
  if (/-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m.test(text)) {
    return 'is protected by a passphrase; write it without one, for example with openssl pkey'
  }
  try {
    return createPrivateKey(bytes)
  } catch (error) {
    return `holds a private key that cannot be read: ${libraryReason(error)}`
  }
}

/** `ee key too small` of `error:0A00018F:SSL routines::ee key too small`. */
function libraryReason(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  return shown(message.split('::').at(-1) ?? message)
}

/** Interval between two log lines about failed handshakes. */
const REPORT_EVERY_MS = 60_000

/** Logs failed handshakes: one line per minute for any number of clients. */
export function createHandshakeReport(
  log: Log,
  surface: Surface,
): (error: Error & { code?: string }, peer: string) => void {
  let count = 0
  let lastAt = Number.NEGATIVE_INFINITY
  return (error, peer) => {
    const reason = error.code === 'ERR_SSL_HTTP_REQUEST' ? 'the client speaks plain HTTP' : libraryReason(error)
    const fields = { listener: surface, remote_address: peer, reason }
    // A TCP port check looks like this.
    if (error.code === 'ECONNRESET') {
      log.debug('tls.handshake_cut', 'A client disconnected during the TLS handshake', fields)
      return
    }
    count += 1
    const now = performance.now()
    if (now - lastAt < REPORT_EVERY_MS) return
    log.info('tls.handshake_failed', 'A TLS handshake failed', { ...fields, failures: count })
    lastAt = now
    count = 0
  }
}
