/**
 * Components of the server under the names of existing installations (contract 10, 10.6). There each is a process; in
 * svc all are parts of one process.
 */
export interface Component {
  name: string
  /** Short description. */
  about: string
  /** The module that does its work; undefined: not in this release. */
  module: string | undefined
}

/** In output order. */
export const components: readonly Component[] = [
  { name: 'svcactionrunner', about: 'runs actions', module: 'executions' },
  { name: 'svcapi', about: 'serves the API', module: 'executions' },
  { name: 'svcstream', about: 'serves event streams', module: 'stream' },
  { name: 'svcauth', about: 'serves logins', module: 'auth' },
  { name: 'svcgarbagecollector', about: 'deletes old records', module: 'maintenance' },
  { name: 'svcnotifier', about: 'announces finished executions', module: 'triggers' },
  { name: 'svcrulesengine', about: 'matches events against rules', module: 'rules' },
  { name: 'svcsensorcontainer', about: 'runs sensors', module: 'sensorcontainer' },
  { name: 'svcchatops', about: 'connects chat systems', module: undefined },
  { name: 'svctimersengine', about: 'fires timers', module: 'timers' },
  { name: 'svcworkflowengine', about: 'runs workflows', module: 'workflows' },
  { name: 'svcscheduler', about: 'assigns slots to executions', module: 'executions' },
]
