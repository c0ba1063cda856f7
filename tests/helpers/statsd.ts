/** A statsd server that takes nothing but the protocol: `name:value|type[|@rate]`, a line each. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'

export interface Sample {
  name: string
  value: number
  type: 'c' | 'ms' | 'g'
  /** 1 unless the line says another. */
  rate: number
}

export interface StatsdServer {
  readonly port: number
  readonly samples: readonly Sample[]
  /** Lines that are none. */
  readonly broken: readonly string[]
  readonly longestPacketBytes: number
  /** Sum of a counter as the server would have it; 0 when there is none. */
  count(name: string): number
  of(name: string, type: Sample['type']): Sample[]
  names(): Set<string>
  stop(): Promise<void>
}

// What Graphite makes files of: neither blanks nor slashes, and no empty part between two dots.
const LINE = /^(?<name>[\w-]+(?:\.[\w-]+)*):(?<value>-?\d+(?:\.\d+)?)\|(?<type>c|ms|g)(?:\|@(?<rate>0?\.\d+))?$/

export async function startStatsd(port = 0): Promise<StatsdServer> {
  const samples: Sample[] = []
  const broken: string[] = []
  let longestPacketBytes = 0
  const socket = createSocket('udp4')
  socket.on('message', (packet) => {
    longestPacketBytes = Math.max(longestPacketBytes, packet.length)
    for (const line of packet.toString('utf8').split('\n')) {
      const { name = '', value, type, rate = '1' } = LINE.exec(line)?.groups ?? {}
      // A timer may not be negative, and a gauge with a sign would be added to the last one.
      if (name === '' || (type !== 'c' && Number(value) < 0)) broken.push(line)
      else samples.push({ name, value: Number(value), type: type as Sample['type'], rate: Number(rate) }) // the pattern says so
    }
  })
  socket.bind(port, '127.0.0.1')
  await once(socket, 'listening')
  const of = (name: string, type: Sample['type']): Sample[] =>
    samples.filter((sample) => sample.name === name && sample.type === type)
  return {
    port: socket.address().port,
    samples,
    broken,
    get longestPacketBytes() {
      return longestPacketBytes
    },
    count: (name) => of(name, 'c').reduce((sum, { value, rate }) => sum + value / rate, 0),
    of,
    names: () => new Set(samples.map(({ name }) => name)),
    async stop() {
      socket.close()
      await once(socket, 'close')
    },
  }
}
