export { environmentProxy, type EnvironmentProxy } from './environment-proxy.ts'
export { isLoopback } from './loopback.ts'
