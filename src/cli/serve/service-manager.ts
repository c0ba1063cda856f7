/**
 * Notifies the service manager that started the server (sd_notify(3)): `systemctl start` then waits until the
 * server answers, and dependent units find it ready. Without `NOTIFY_SOCKET` there is nothing to notify.
 */

/** Tells it variables such as `READY=1`; never throws: a manager that does not listen changes nothing for the server. */
export type TellManager = (message: string) => void

const AF_UNIX = 1
const SOCK_DGRAM = 2
const SOCK_CLOEXEC = 0o2000000
const MSG_NOSIGNAL = 0x4000
/** Of `sockaddr_un`, without the two bytes of the family. */
const MAX_PATH_BYTES = 107

/** @param env is rid of the variable, because commands of actions are not meant to speak for the server */
export async function findServiceManager(env: NodeJS.ProcessEnv): Promise<TellManager> {
  const { NOTIFY_SOCKET: name = '' } = env
  delete env['NOTIFY_SOCKET']
  const isAbstract = name.startsWith('@')
  if (!isAbstract && !name.startsWith('/')) return () => undefined
  const path = Buffer.from(isAbstract ? `\0${name.slice(1)}` : `${name}\0`)
  if (path.length > MAX_PATH_BYTES + 1) return () => undefined
  try {
    // Node has no datagrams of this kind; nobody else needs the library on this thread.
    const { default: koffi } = await import('koffi')
    const c = koffi.load('libc.so.6')
    const openSocket = c.func('int socket(int, int, int)')
    const send = c.func('intptr_t sendto(int, const char *, size_t, int, const uint8_t *, uint32_t)')
    const close = c.func('int close(int)')
    const address = Buffer.concat([Buffer.from(new Uint16Array([AF_UNIX]).buffer), path])
    return (message) => {
      const socket: number = openSocket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)
      if (socket < 0) return
      send(socket, message, Buffer.byteLength(message), MSG_NOSIGNAL, address, address.length)
      close(socket)
    }
  } catch {
    return () => undefined
  }
}
