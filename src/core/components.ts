/**
 * The parts of the server under the names that operators of existing installations know (contract 10, 10.6). There they
 * are processes; here they are parts of one process.
 */
export interface Component {
  name: string
  /** What it does, in a few words. */
  about: string
  /** The module that does its work; undefined: this release has none. */
  module: string | undefined
}

/** In the order in which they are listed. */
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
