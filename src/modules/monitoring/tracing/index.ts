/** OpenTelemetry export, loaded only if `tracing.otlp_endpoint` is set. */
import type { Bus } from '../../../bus/index.ts'
import { createExporter, type ExporterOptions } from './exporter.ts'
import { traceFacts } from './trace-facts.ts'

export interface Tracing {
  readonly waitingCount: number
  readonly droppedCount: number
  stop(): Promise<void>
}

export function startTracing({
  bus,
  causeOf,
  ...options
}: ExporterOptions & { bus: Bus; readonly causeOf: (instanceId: string) => string | undefined }): Tracing {
  const exporter = createExporter(options)
  const stopListening = traceFacts(bus, exporter, causeOf)
  return {
    get waitingCount() {
      return exporter.waitingCount
    },
    get droppedCount() {
      return exporter.droppedCount
    },
    stop() {
      stopListening()
      return exporter.stop()
    },
  }
}
