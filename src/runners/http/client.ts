/** The parts of undici that are used; imported when they are first needed, because they would make the start of the server longer. */
export { Agent, buildConnector, FormData, Pool, ProxyAgent } from 'undici'
