/**
 * Every command: how it is called and where its code is. Code is loaded only when its command is used, so that the client
 * starts at once. To add a command: write `commands/<noun>.ts` and a line here.
 */
import type { CliCommand } from '../command.ts'
import type { CommandContext } from '../session.ts'

export interface CommandEntry {
  name: string
  /** Another name for it. */
  alias?: string
  /** For `svc --help`; also what a command that only has sub-commands is described by. */
  summary: string
  /** For `svc --help`: one of its own examples, or of its sub-commands. */
  example: string
  /** Heading it stands under in `svc --help`. */
  group: string
  /** A program of its own name, not a command of `svc`; the command that does the same mentions it. */
  isProgram?: true
  /** Its `--config-file` is that of the server. */
  readsServerConfig?: true
  load(context: CommandContext): Promise<CliCommand>
}

export const commands: readonly CommandEntry[] = [
  {
    name: 'serve',
    summary: 'Run the server in the foreground.',
    example: 'svc serve --config-file /etc/svc/svc.conf --api-port 8101',
    group: 'Server:',
    readsServerConfig: true,
    load: async ({ setExitCode }) => (await import('./serve.ts')).createServeCommand(setExitCode),
  },
  {
    name: 'init',
    summary: 'Create a folder with a pack, a configuration and a README.',
    example: 'svc init jobs',
    group: 'Server:',
    load: async (context) => (await import('./init.ts')).createInitCommand(context),
  },
  {
    name: 'status',
    summary: 'Show the server status and what needs attention.',
    example: 'svc status',
    group: 'Server:',
    readsServerConfig: true,
    load: async (context) => (await import('./status.ts')).createStatusCommand(context),
  },
  {
    name: 'doctor',
    summary: 'Check the configuration and this machine, and suggest fixes.',
    example: 'svc doctor',
    group: 'Server:',
    readsServerConfig: true,
    load: async (context) => (await import('./doctor.ts')).createDoctorCommand(context),
  },
  {
    name: 'start',
    summary: 'Start the server in the background.',
    example: 'svc start',
    group: 'Server:',
    readsServerConfig: true,
    load: async (context) => (await import('./control.ts')).createStartCommand(context),
  },
  {
    name: 'stop',
    summary: 'Stop the server and wait until its process has ended.',
    example: 'svc stop',
    group: 'Server:',
    readsServerConfig: true,
    load: async (context) => (await import('./control.ts')).createStopCommand(context),
  },
  {
    name: 'restart',
    summary: 'Stop the server and start it again with the same arguments.',
    example: 'svc restart',
    group: 'Server:',
    readsServerConfig: true,
    load: async (context) => (await import('./control.ts')).createRestartCommand(context),
  },
  {
    name: 'reload',
    summary: 'Make the server reload certificates, role definitions and packs.',
    example: 'svc reload',
    group: 'Server:',
    readsServerConfig: true,
    load: async (context) => (await import('./control.ts')).createReloadCommand(context),
  },
  {
    name: 'reopen-logs',
    summary: 'Make the server reopen its log files after log rotation.',
    example: 'svc reopen-logs',
    group: 'Server:',
    readsServerConfig: true,
    load: async (context) => (await import('./control.ts')).createReopenLogsCommand(context),
  },
  {
    name: 'service',
    summary: 'Install and remove the systemd service.',
    example: 'svc service install',
    group: 'Server:',
    load: async (context) => (await import('./service.ts')).createServiceCommand(context),
  },
  {
    name: 'purge',
    summary: 'Delete old executions, output and other records.',
    example: 'svc purge executions --older-than 30d --dry-run',
    group: 'Server:',
    readsServerConfig: true,
    load: async (context) => (await import('./purge.ts')).createPurgeCommand(context),
  },
  {
    name: 'backup',
    summary: 'Create and list backups of the database.',
    example: 'svc backup',
    group: 'Server:',
    readsServerConfig: true,
    load: async (context) => (await import('./backup.ts')).createBackupCommand(context),
  },
  {
    name: 'restore',
    summary: 'Replace the database with a backup.',
    example: 'svc restore svc-20300102T030405.678Z.db',
    group: 'Server:',
    readsServerConfig: true,
    load: async (context) => (await import('./restore.ts')).createRestoreCommand(context),
  },
  {
    name: 'compact',
    summary: 'Shrink the database file to the size of its content.',
    example: 'svc compact',
    group: 'Server:',
    readsServerConfig: true,
    load: async (context) => (await import('./compact.ts')).createCompactCommand(context),
  },
  {
    name: 'migrate',
    summary: 'Check and import a StackStorm installation.',
    example: 'svc migrate check /mnt/old-host',
    group: 'Server:',
    readsServerConfig: true,
    load: async (context) => (await import('./migrate.ts')).createMigrateCommand(context),
  },
  {
    name: 'run',
    summary: 'Run an action and wait for its result.',
    example: 'svc run core.local date -R',
    group: 'Actions:',
    load: async (context) => (await import('./run.ts')).createRunCommand(context),
  },
  {
    name: 'action',
    summary: 'List, show, create, change, delete and run actions.',
    example: 'svc action list -p core',
    group: 'Actions:',
    load: async (context) => (await import('./action.ts')).createActionCommand(context),
  },
  {
    name: 'workflow',
    summary: 'Inspect, test and draw the definitions of workflows.',
    example: 'svc workflow inspect deploy.yaml',
    group: 'Actions:',
    load: async (context) => (await import('./workflow.ts')).createWorkflowCommand(context),
  },
  {
    name: 'action-alias',
    summary: 'Manage and try the chat commands that run actions.',
    example: 'svc action-alias list -p examples',
    group: 'Actions:',
    load: async (context) => (await import('./action-alias.ts')).createActionAliasCommand(context),
  },
  {
    name: 'chat',
    summary: 'Run a bot that carries out commands from a chat.',
    example: 'svc chat chat.conf',
    group: 'Actions:',
    load: async (context) => (await import('./chat.ts')).createChatCommand(context),
  },
  {
    name: 'runner',
    summary: 'List, show, enable and disable runners.',
    example: 'svc runner list',
    group: 'Actions:',
    load: async (context) => (await import('./runner.ts')).createRunnerCommand(context),
  },
  {
    name: 'policy',
    summary: 'Manage policies: limits and retries of executions.',
    example: 'svc policy create one_deploy.yaml',
    group: 'Actions:',
    load: async (context) => (await import('./policy.ts')).createPolicyCommand(context),
  },
  {
    name: 'policy-type',
    summary: 'List and show policy types.',
    example: 'svc policy-type list',
    group: 'Actions:',
    load: async (context) => (await import('./policy-type.ts')).createPolicyTypeCommand(context),
  },
  {
    name: 'pack',
    summary: 'List, install, configure, remove and register packs.',
    example: 'svc pack install examples',
    group: 'Packs:',
    load: async (context) => (await import('./pack.ts')).createPackCommand(context),
  },
  {
    name: 'execution',
    summary: 'List, show, follow, re-run, pause and cancel executions.',
    example: 'svc execution tail last',
    group: 'Executions:',
    load: async (context) => (await import('./execution.ts')).createExecutionCommand(context),
  },
  {
    name: 'inquiry',
    summary: 'List, show and answer inquiries of executions.',
    example: 'svc inquiry list',
    group: 'Executions:',
    load: async (context) => (await import('./inquiry.ts')).createInquiryCommand(context),
  },
  {
    name: 'notify',
    summary: 'List, show, replay and test notifications.',
    example: 'svc notify test slack',
    group: 'Events:',
    load: async (context) => (await import('./notify.ts')).createNotifyCommand(context),
  },
  {
    name: 'sensor',
    summary: 'List, show, enable and disable sensors.',
    example: 'svc sensor list -p examples',
    group: 'Events:',
    load: async (context) => (await import('./sensor.ts')).createSensorCommand(context),
  },
  {
    name: 'rule',
    summary: 'List, show, create, change, delete and test rules.',
    example: 'svc rule create on_order.yaml',
    group: 'Events:',
    load: async (context) => (await import('./rule.ts')).createRuleCommand(context),
  },
  {
    name: 'rule-type',
    summary: 'List and show rule types.',
    example: 'svc rule-type list',
    group: 'Events:',
    load: async (context) => (await import('./rule-type.ts')).createRuleTypeCommand(context),
  },
  {
    name: 'trigger',
    summary: 'List, show, create, change and delete trigger types.',
    example: 'svc trigger getspecs core.svc.webhook',
    group: 'Events:',
    load: async (context) => (await import('./trigger.ts')).createTriggerCommand(context),
  },
  {
    name: 'trigger-instance',
    summary: 'List, show, explain and re-emit trigger instances (events).',
    example: 'svc trigger-instance explain 6000000000000000000000aa',
    group: 'Events:',
    load: async (context) => (await import('./trigger-instance.ts')).createTriggerInstanceCommand(context),
  },
  {
    name: 'rule-enforcement',
    summary: 'List and show rule enforcements: which rule started which execution.',
    example: 'svc rule-enforcement list -n 10 --rule default.on_order',
    group: 'Events:',
    load: async (context) => (await import('./rule-enforcement.ts')).createRuleEnforcementCommand(context),
  },
  {
    name: 'webhook',
    summary: 'List, show and call webhooks.',
    example: `svc webhook send orders '{"kind": "order", "id": 17}' --wait`,
    group: 'Events:',
    load: async (context) => (await import('./webhook.ts')).createWebhookCommand(context),
  },
  {
    name: 'crontab',
    summary: 'Convert the jobs of a crontab to a pack.',
    example: 'svc crontab import /etc/crontab --dry-run',
    group: 'Events:',
    load: async (context) => (await import('./crontab.ts')).createCrontabCommand(context),
  },
  {
    name: 'timer',
    summary: 'List and show timers.',
    example: 'svc timer list -ty core.svc.IntervalTimer',
    group: 'Events:',
    load: async (context) => (await import('./timer.ts')).createTimerCommand(context),
  },
  {
    name: 'job',
    summary: 'List and show jobs: rules with their last and next runs.',
    example: 'svc job list --late',
    group: 'Events:',
    load: async (context) => (await import('./job.ts')).createJobCommand(context),
  },
  {
    name: 'trace',
    summary: 'List and show traces: an event and everything it caused.',
    example: 'svc trace list -c order-17',
    group: 'Events:',
    load: async (context) => (await import('./trace.ts')).createTraceCommand(context),
  },
  {
    name: 'key',
    summary: 'List, show, set and delete key-value pairs of the datastore.',
    example: 'svc key set web.url https://example.com',
    group: 'Datastore:',
    load: async (context) => (await import('./key.ts')).createKeyCommand(context),
  },
  {
    name: 'login',
    summary: 'Log in: later commands act as this user.',
    example: 'svc login alice',
    group: 'Access:',
    load: async (context) => (await import('./auth.ts')).createLoginCommand(context),
  },
  {
    name: 'logout',
    summary: 'Log out: revoke and delete the stored token.',
    example: 'svc logout',
    group: 'Access:',
    load: async (context) => (await import('./auth.ts')).createLogoutCommand(context),
  },
  {
    name: 'whoami',
    summary: 'Show the current user, the authentication method and the roles.',
    example: 'svc whoami',
    group: 'Access:',
    load: async (context) => (await import('./auth.ts')).createWhoamiCommand(context),
  },
  {
    name: 'auth',
    summary: 'Create a token and print it.',
    example: 'svc auth alice',
    group: 'Access:',
    load: async (context) => (await import('./auth.ts')).createAuthCommand(context),
  },
  {
    name: 'token',
    summary: 'Revoke and validate tokens.',
    example: 'svc token revoke --user alice',
    group: 'Access:',
    load: async (context) => (await import('./token.ts')).createTokenCommand(context),
  },
  {
    name: 'apikey',
    alias: 'api-key',
    summary: 'Create, list, disable and delete API keys.',
    example: 'svc apikey create -k --expires 90d',
    group: 'Access:',
    load: async (context) => (await import('./apikey.ts')).createApiKeyCommand(context),
  },
  {
    name: 'user',
    summary: 'Add, list, change and delete users.',
    example: 'svc user add alice --nickname chat=al',
    group: 'Access:',
    load: async (context) => (await import('./user.ts')).createUserCommand(context),
  },
  {
    name: 'role',
    summary: 'List and show roles.',
    example: 'svc role list -s',
    group: 'Access:',
    load: async (context) => (await import('./role.ts')).createRoleCommand(context),
  },
  {
    name: 'role-assignment',
    summary: 'List and show role assignments.',
    example: 'svc role-assignment list -u alice',
    group: 'Access:',
    load: async (context) => (await import('./role.ts')).createRoleAssignmentCommand(context),
  },
  {
    name: 'service-registry',
    summary: 'List the services of the server and their processes.',
    example: 'svc service-registry member list',
    group: 'Server:',
    load: async (context) => (await import('./service-registry.ts')).createServiceRegistryCommand(context),
  },
  {
    name: 'permission-type',
    summary: 'List and show permission types.',
    example: 'svc permission-type get action',
    group: 'Access:',
    load: async (context) => (await import('./permission-type.ts')).createPermissionTypeCommand(context),
  },
  {
    name: 'rbac',
    summary: 'Apply RBAC definition files.',
    example: 'svc rbac apply',
    group: 'Access:',
    load: async (context) => (await import('./rbac.ts')).createRbacCommand(context),
  },
  {
    name: 'help',
    summary: 'Show help for a command or a topic.',
    example: 'svc help execution list',
    group: 'Help:',
    load: async (context) => (await import('./help.ts')).createHelpCommand(context),
  },
  {
    name: 'manual',
    summary: 'Show the manual page with all commands, options and topics.',
    example: 'svc manual',
    group: 'Help:',
    load: async () => (await import('./manual.ts')).createManualCommand(),
  },
  {
    name: 'completion',
    summary: 'Print completion scripts for bash, zsh and fish.',
    example: 'svc completion bash > /etc/bash_completion.d/svc',
    group: 'Help:',
    load: async (context) => (await import('./completion.ts')).createCompletionCommand(context),
  },
]

/** Programs of existing installations that are more than another name of a command (contract 10, 10.6 and 10.10). */
export const programs: readonly CommandEntry[] = [
  {
    name: 'svcctl',
    isProgram: true,
    summary: 'Show, start and stop the components of the server.',
    example: 'svcctl status',
    group: 'Server:',
    load: async (context) => (await import('./svcctl.ts')).createSvcctl(context),
  },
  {
    name: 'svc-register-content',
    isProgram: true,
    summary: 'Register the content of packs.',
    example: 'svc-register-content --register-all',
    group: 'Packs:',
    load: async (context) => (await import('./register-content.ts')).createRegisterContent(context),
  },
]

/** The command of that name or alias, or the program. */
export function findEntry(name: string): CommandEntry | undefined {
  return [...commands, ...programs].find((entry) => entry.name === name || entry.alias === name)
}

/** Loads a command so that it can be described or completed; it cannot be run. */
export function readCommand(entry: CommandEntry): Promise<CliCommand> {
  return loadCommand(entry, {
    globals: () => ({}),
    setExitCode: () => undefined,
    showHelp: () => Promise.resolve(),
  })
}

/** Loads a command with its sub-commands. */
export async function loadCommand(entry: CommandEntry, context: CommandContext): Promise<CliCommand> {
  const path = entry.isProgram === true ? entry.name : `svc ${entry.name}`
  const command = (await entry.load(context)).name(path)
  if (entry.alias !== undefined) command.alias(entry.alias)
  if (command.commands.length > 0) command.footer(`${path} <command> --help shows the help of one command.`)
  return command.description() === '' ? command.description(entry.summary) : command
}
