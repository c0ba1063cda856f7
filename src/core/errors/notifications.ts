/** Errors of notifications. */
import { AppError } from './app-error.ts'

export const notificationBusy = (id: string): AppError =>
  new AppError('NOTIFICATION_BUSY', `Notification "${id}" is being sent; replay it when that is over.`)
