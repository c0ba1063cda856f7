/** What traces ask of modules above them; `app.ts` says who answers. */
export interface TracesPorts {
  /** Ids of the traces with members that have not ended. */
  readonly openTraces: () => Iterable<string>
}
