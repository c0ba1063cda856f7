/** The account that commands of actions run as: that of the server, root included, unless it has another one for them. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { ok, programOptions, skipped, warning, type HealthCheck } from './check.ts'

const run = promisify(execFile)
const TIMEOUT_MS = 10_000

export const commandAccount: HealthCheck = {
  name: 'account',
  async run(context) {
    const { loaded, running, status } = context
    if (running !== undefined) {
      const account = (await status())?.commandAccount
      if (account === undefined) return [skipped('The server does not say which account it runs commands as.')]
      const { user, isRoot, remedy } = account
      return isRoot
        ? [warning(`Commands of actions run as ${user}, which may do everything on this machine.`, remedy)]
        : [ok(`Commands of actions run as "${user}".`)]
    }
    const { user } = loaded.config.system_user
    if (process.getuid?.() !== 0) return [ok('A server of this account cannot run commands as root.')]
    const exists = await run('id', ['-u', '--', user], programOptions(context, TIMEOUT_MS)).then(
      ({ stdout }) => String(stdout).trim() !== '0',
      () => false,
    )
    if (exists) return [ok(`A server that root starts runs commands as "${user}", if sudo is installed.`)]
    return [
      warning(
        `A server that root starts runs commands as root: "${user}" is no account without privileges.`,
        `Create the account: useradd --system --create-home ${user === 'root' ? 'svc' : user}. Or set system_user.user to another one.`,
      ),
    ]
  },
}
