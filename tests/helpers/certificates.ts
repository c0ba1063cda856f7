/** Certificate authorities of a test's own, made with the real `openssl`. */
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ensureDebianPackage } from './apt.ts'

const OPENSSL = '/usr/bin/openssl'
const DAYS = '2'

export interface Authority {
  /** Path of its certificate. */
  caFile: string
  /** @param subjectAltName such as `IP:127.0.0.1,DNS:localhost` */
  issue(name: string, subjectAltName: string): Certificate
}

/** Paths of PEM files. */
export interface Certificate {
  certFile: string
  keyFile: string
}

/** @param folder where its files go, each beginning with the name */
export async function makeAuthority(folder: string, name: string): Promise<Authority> {
  await ensureDebianPackage('openssl', OPENSSL)
  const file = (suffix: string): string => join(folder, `${name}-${suffix}`)
  const openssl = (...parameters: string[]): void => {
    execFileSync(OPENSSL, parameters, { stdio: ['ignore', 'ignore', 'pipe'] })
  }
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  const caFile = file('ca.pem')
  const caKey = file('ca.key')
  openssl('req', '-x509', ...newKey, '-keyout', caKey, '-out', caFile, '-days', DAYS, '-subj', `/CN=${name} authority`)
  return {
    caFile,
    issue(subject, subjectAltName) {
      const certFile = file(`${subject}.pem`)
      const keyFile = file(`${subject}.key`)
      const request = file(`${subject}.csr`)
      const extensions = file(`${subject}.ext`)
      writeFileSync(extensions, `subjectAltName=${subjectAltName}\nbasicConstraints=CA:FALSE\n`)
      openssl('req', ...newKey, '-keyout', keyFile, '-out', request, '-subj', `/CN=${subject}`)
      const signing = ['-CA', caFile, '-CAkey', caKey, '-CAcreateserial', '-extfile', extensions, '-days', DAYS]
      openssl('x509', '-req', '-in', request, '-out', certFile, ...signing)
      return { certFile, keyFile }
    },
  }
}
