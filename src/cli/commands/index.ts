/**
 * Every command: how it is called and where its code is. Code is loaded only when its command is used, so that the client
 * starts at once. To add a command: write `commands/<noun>.ts` and a line here.
 */
import type { Command } from 'commander'
import type { CommandContext } from '../session.ts'

export interface CommandEntry {
  name: string
  /** Another name for it. */
  alias?: string
  /** For `svc --help`. */
  summary: string
  /** Heading it stands under in `svc --help`. */
  group: string
  load(context: CommandContext): Promise<Command>
}

export const commands: readonly CommandEntry[] = [
  {
    name: 'serve',
    summary: 'Run the server in the foreground.',
    group: 'Server:',
    load: async ({ setExitCode }) => (await import('./serve.ts')).createServeCommand(setExitCode),
  },
  {
    name: 'run',
    summary: 'Run an action and wait for its result.',
    group: 'Actions:',
    load: async (context) => (await import('./run.ts')).createRunCommand(context),
  },
  {
    name: 'action',
    summary: 'List, show, make, change, delete and run actions.',
    group: 'Actions:',
    load: async (context) => (await import('./action.ts')).createActionCommand(context),
  },
  {
    name: 'policy',
    summary: 'Say how many executions of an action run at once, and which are run again.',
    group: 'Actions:',
    load: async (context) => (await import('./policy.ts')).createPolicyCommand(context),
  },
  {
    name: 'policy-type',
    summary: 'List and show the types of policies.',
    group: 'Actions:',
    load: async (context) => (await import('./policy-type.ts')).createPolicyTypeCommand(context),
  },
  {
    name: 'pack',
    summary: 'List, install, remove and register packs of actions and rules.',
    group: 'Packs:',
    load: async (context) => (await import('./pack.ts')).createPackCommand(context),
  },
  {
    name: 'execution',
    summary: 'List, show, follow, repeat and stop executions.',
    group: 'Executions:',
    load: async (context) => (await import('./execution.ts')).createExecutionCommand(context),
  },
  {
    name: 'inquiry',
    summary: 'List, show and answer the questions that executions wait for.',
    group: 'Executions:',
    load: async (context) => (await import('./inquiry.ts')).createInquiryCommand(context),
  },
  {
    name: 'rule',
    summary: 'Say what shall run when something happens, and try it.',
    group: 'Events:',
    load: async (context) => (await import('./rule.ts')).createRuleCommand(context),
  },
  {
    name: 'trigger',
    summary: 'List and make the kinds of events that rules react to.',
    group: 'Events:',
    load: async (context) => (await import('./trigger.ts')).createTriggerCommand(context),
  },
  {
    name: 'trigger-instance',
    summary: 'List what has happened, explain what came of it, repeat it.',
    group: 'Events:',
    load: async (context) => (await import('./trigger-instance.ts')).createTriggerInstanceCommand(context),
  },
  {
    name: 'rule-enforcement',
    summary: 'List and show what rules have started.',
    group: 'Events:',
    load: async (context) => (await import('./rule-enforcement.ts')).createRuleEnforcementCommand(context),
  },
  {
    name: 'webhook',
    summary: 'List and show webhooks.',
    group: 'Events:',
    load: async (context) => (await import('./webhook.ts')).createWebhookCommand(context),
  },
  {
    name: 'timer',
    summary: 'List and show timers.',
    group: 'Events:',
    load: async (context) => (await import('./timer.ts')).createTimerCommand(context),
  },
  {
    name: 'trace',
    summary: 'List and show everything that came of an event.',
    group: 'Events:',
    load: async (context) => (await import('./trace.ts')).createTraceCommand(context),
  },
  {
    name: 'key',
    summary: 'List, show, set and delete what the datastore keeps.',
    group: 'Datastore:',
    load: async (context) => (await import('./key.ts')).createKeyCommand(context),
  },
  {
    name: 'login',
    summary: 'Log in: further commands act as this user.',
    group: 'Access:',
    load: async (context) => (await import('./auth.ts')).createLoginCommand(context),
  },
  {
    name: 'whoami',
    summary: 'Tell who is logged in, and with which roles.',
    group: 'Access:',
    load: async (context) => (await import('./auth.ts')).createWhoamiCommand(context),
  },
  {
    name: 'auth',
    summary: 'Make a token and print it.',
    group: 'Access:',
    load: async (context) => (await import('./auth.ts')).createAuthCommand(context),
  },
  {
    name: 'apikey',
    alias: 'api-key',
    summary: 'Make, list, disable and delete API keys.',
    group: 'Access:',
    load: async (context) => (await import('./apikey.ts')).createApiKeyCommand(context),
  },
  {
    name: 'user',
    summary: 'Add, list, change and delete users.',
    group: 'Access:',
    load: async (context) => (await import('./user.ts')).createUserCommand(context),
  },
  {
    name: 'role',
    summary: 'List and show roles.',
    group: 'Access:',
    load: async (context) => (await import('./role.ts')).createRoleCommand(context),
  },
  {
    name: 'role-assignment',
    summary: 'List and show which users have which roles.',
    group: 'Access:',
    load: async (context) => (await import('./role.ts')).createRoleAssignmentCommand(context),
  },
  {
    name: 'rbac',
    summary: 'Apply the definition files of roles.',
    group: 'Access:',
    load: async (context) => (await import('./rbac.ts')).createRbacCommand(context),
  },
]
