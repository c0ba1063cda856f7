/** What svc uses of nodemailer; imported on first use, because it would slow down the start of the server. */
export { createTransport } from 'nodemailer'
