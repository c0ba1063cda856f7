/** Reads the OpenSSH client configuration of a host (`ssh_runner.use_ssh_config`). */
import { homedir } from 'node:os'
import { readBoundedFile } from '../../lib/files/index.ts'
import { expandHome } from './private-key.ts'

export interface HostSettings {
  hostName?: string
  user?: string
  port?: number
  identityFile?: string
  /** `[user@]host[:port]` of each jump host, in the order of the connection. */
  proxyJump?: string[]
}

const MAX_FILE_BYTES = 1024 * 1024
/** Other directives would run a program or query the network on each lookup. */
const MATCH_CRITERIA = new Set(['all', 'host', 'originalhost', 'user', 'localuser'])

/** @throws Error whose message is a sentence for the user */
export async function readHostSettings(path: string, host: string, user: string | undefined): Promise<HostSettings> {
  const file = await readBoundedFile(expandHome(path), MAX_FILE_BYTES)
  if ('problem' in file) {
    if (file.isMissing) return {}
    throw new Error(`The file of ssh_runner.ssh_config_file_path ${file.problem}.`)
  }
  const { default: SSHConfig } = await import('ssh-config')
  let config
  try {
    config = SSHConfig.parse(file.bytes.toString('utf8'))
  } catch {
    throw new Error('The file of ssh_runner.ssh_config_file_path is not an OpenSSH client configuration.')
  }
  const kept = new SSHConfig()
  for (const line of config) {
    if ('criteria' in line && Object.keys(line.criteria).some((name) => !MATCH_CRITERIA.has(name.toLowerCase())))
      continue
    if ('param' in line && /^canonical/i.test(line.param)) continue
    kept.push(line)
  }
  const found = kept.compute(user === undefined ? { Host: host } : { Host: host, User: user }, { ignoreCase: true })
  const values = new Map(Object.entries(found).map(([name, value]) => [name.toLowerCase(), [value].flat()[0]]))
  const settings: HostSettings = {}
  const hostName = values.get('hostname')
  if (hostName !== undefined) settings.hostName = hostName.replaceAll('%h', host).replaceAll('%%', '%')
  const configuredUser = values.get('user')
  if (configuredUser !== undefined) settings.user = configuredUser
  const port = Number(values.get('port'))
  if (Number.isInteger(port) && port > 0 && port <= 65_535) settings.port = port
  const identityFile = values.get('identityfile')
  if (identityFile !== undefined && identityFile.toLowerCase() !== 'none') {
    const values: Record<string, string> = {
      '%%': '%',
      '%d': homedir(),
      '%h': settings.hostName ?? host,
      '%n': host,
      '%r': user ?? settings.user ?? '',
    }
    settings.identityFile = identityFile.replaceAll(/%./g, (token) => values[token] ?? token)
  }
  const proxyJump = values.get('proxyjump')
  if (proxyJump !== undefined && proxyJump.toLowerCase() !== 'none') {
    settings.proxyJump = proxyJump.split(',').map((jump) => jump.trim())
  }
  return settings
}
