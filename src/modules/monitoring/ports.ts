/** What monitoring asks of modules above it; `app.ts` says who answers. */
export interface MonitoringPorts {
  /** The execution that a trigger instance comes from, if it comes from one. */
  readonly causeOf: (instanceId: string) => string | undefined
}
