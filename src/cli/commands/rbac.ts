/** `svc rbac apply`, also called `svc-apply-rbac-definitions` (contract 11, 11.6). */
import { CliCommand } from '../command.ts'
import { recordIn, toObject } from '../connection/responses.ts'
import { exitCodes } from '../exit-codes.ts'
import { withProgramSession } from '../operator-session.ts'
import { addCommonOptions, type CommonFlags } from '../options.ts'
import { cellText, renderTable } from '../output/print.ts'
import { showList, type CliResource } from '../resources.ts'
import type { CommandContext, Session } from '../session.ts'
import { role, roleAssignment } from './role.ts'

interface ApplyFlags extends CommonFlags {
  verbose?: boolean
}

const kinds = ['roles', 'assignments', 'mappings'] as const
const counts = ['created', 'updated', 'removed'] as const

export function createRbacCommand(context: CommandContext): CliCommand {
  const apply = addCommonOptions(new CliCommand('apply'))
    .description('Apply the RBAC definition files of the server: roles, assignments and mappings.')
    .option('--verbose', 'also list the resulting roles and assignments')
    .notes(
      'The files are in the directory `rbac` of the base path: `roles/*.yaml`, `assignments/*.yaml` and `mappings/*.yaml`. The command prints how many definitions were created, updated and removed. If a file is invalid, it lists all errors and changes nothing.',
      'For example, `{username: alice, roles: [observer]}` in `assignments/alice.yaml` gives alice read-only access.',
      'Administrators only. Without a login, signal the server process instead: `kill -HUP <pid of svc serve>`.',
      'Also called svc-apply-rbac-definitions. By that name, --config-file is that of the server, and needs no login on its machine.',
    )
    .examples('svc rbac apply', 'svc rbac apply --verbose')
    .action((flags: ApplyFlags) =>
      withProgramSession('svc-apply-rbac-definitions', context, flags, (session) =>
        applyDefinitions(session, flags.verbose === true),
      ),
    )
  return new CliCommand('rbac').addCommand(apply)
}

async function applyDefinitions(session: Session, isVerbose: boolean): Promise<number> {
  const progress = session.progress('Applying')
  const answer = recordIn(await session.client.call('POST', '/rbac/definitions/apply'))
  progress.stop()
  if (session.form !== 'human') {
    await session.printMachine(answer)
    return exitCodes.ok
  }
  const rows = kinds.map((kind) => [kind, ...counts.map((name) => cellText(toObject(answer[kind])[name]))])
  await session.print(renderTable(['definitions', ...counts], rows))
  if (isVerbose) for (const resource of [role, roleAssignment]) await listAll(session, resource)
  return exitCodes.ok
}

async function listAll(session: Session, resource: CliResource): Promise<void> {
  await session.print(`\n${resource.pluralName}:\n`)
  await showList(session, resource, {}, { last: -1 })
}
