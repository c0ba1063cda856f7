/** `npm start [-- <arguments of svc serve>]`: installs and builds what is needed, then serves. */
import './node-version.mjs'

void import('./start-server.mjs')
