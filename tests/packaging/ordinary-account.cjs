// Preloaded: what root starts goes on as an account without rights, so that what may not be written cannot be.
if (process.getuid() === 0) {
  process.setgroups([])
  process.setgid(65534)
  process.setuid(65534)
}
