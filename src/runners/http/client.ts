/** The parts of undici that svc uses; imported on first use, because they would slow down the start of the server. */
export { Agent, buildConnector, Client, FormData, Pool, ProxyAgent } from 'undici'
