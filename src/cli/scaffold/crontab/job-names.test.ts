import { describe, expect, test } from 'vitest'
import { nameJobs } from './job-names.ts'

describe('a name is made from the command', () => {
  test.each([
    ['/usr/local/bin/backup.sh --full --keep=4 /srv/shop > /tmp/log 2>&1', 'backup_full_keep_shop'],
    ['cd /var/www && php artisan schedule:run >> /dev/null 2>&1', 'artisan_schedule_run'],
    ['test -x /usr/sbin/anacron || ( cd / && run-parts --report /etc/cron.daily )', 'run_parts_report_cron_daily'],
    ['[ -x /usr/lib/php/sessionclean ] && /usr/lib/php/sessionclean', 'sessionclean'],
    ['sudo -u www-data nice -n 19 python3.11 -u /srv/manage.py clearsessions', 'manage_clearsessions'],
    ['FOO=bar flock -n /tmp/lock /opt/job', 'job'],
    ['timeout 60 python3 -m http.server', 'http_server'],
    ['/bin/sh -c "cd /srv && ./run-it.sh now"', 'run_it_now'],
    ['2>/dev/null', 'job'],
    ['$(x)', 'x'],
    ['üml äut', 'ml_ut'],
    [`/bin/${'long-name-'.repeat(20)}`, 'long_name_long_name_long_name_long_name'],
  ])('%s', (command, name) => {
    expect(nameJobs([command])).toEqual([name])
  })

  test.each([
    'curl -u user:geheim https://user:geheim@example.org/geheim?key=geheim --header "Authorization: Bearer geheim"',
    'mysqldump -uroot -pgeheim --password=geheim',
    'run PASSWORD=geheim geheim@example.org 0123456789geheim0123456789',
  ])('and shows no secrets of %s', (command) => {
    expect(nameJobs([command])[0]).not.toContain('geheim')
  })
})

test('names are unique, and those of other lines do not depend on the order', () => {
  const commands = ['/a/run.sh', '/b/run.sh', '/a/run.sh', 'other', 'run_2', 'run']
  const names = nameJobs(commands)
  expect(new Set(names).size).toBe(commands.length)
  expect(names[2]).toBe(`${names[0]}_2`)
  expect(nameJobs(commands.toReversed()).toReversed()[1]).toBe(names[1])
  expect(nameJobs([...commands.slice(0, 3), 'new', ...commands.slice(3)]).toSpliced(3, 1)).toEqual(names)
})
