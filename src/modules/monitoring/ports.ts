/** What monitoring needs from modules above it; `app.ts` connects them. */
export interface MonitoringPorts {
  /** The execution that dispatched a trigger instance, if any. */
  readonly causeOf: (instanceId: string) => string | undefined
}
