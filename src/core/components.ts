/**
 * Operators of existing installations know the parts of the server as processes of their own, by these names (contract 10,
 * 10.6). Here they are parts of one process.
 */
export interface Component {
  name: string
  /** What it is about, in a few words. */
  about: string
  /** The module that does its work; undefined: this release has none. */
  module: string | undefined
}

/** In the order they are listed. */
export const components: readonly Component[] = [
  { name: 'svcactionrunner', about: 'runs actions', module: 'executions' },
  { name: 'svcapi', about: 'listener of the API', module: 'executions' },
  { name: 'svcstream', about: 'listener of event streams', module: 'stream' },
  { name: 'svcauth', about: 'listener of logins', module: 'auth' },
  { name: 'svcgarbagecollector', about: 'removes old records', module: 'maintenance' },
  { name: 'svcnotifier', about: 'tells when executions have ended', module: 'triggers' },
  { name: 'svcrulesengine', about: 'matches events with rules', module: 'rules' },
  { name: 'svcsensorcontainer', about: 'runs sensors', module: undefined },
  { name: 'svcchatops', about: 'talks to chat systems', module: undefined },
  { name: 'svctimersengine', about: 'fires timers', module: 'timers' },
  { name: 'svcworkflowengine', about: 'runs workflows', module: undefined },
  { name: 'svcscheduler', about: 'gives executions their slots', module: 'executions' },
]
