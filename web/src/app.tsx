/** The frame around every screen: what there is to look at, who is signed in, whether what is shown is up to date. */
import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { session } from './api/session.ts'
import { Failure } from './components/failure.tsx'
import { lazy, type LazyComponent } from './components/lazy.tsx'
import { LiveMark } from './components/live-mark.tsx'
import { Notices } from './components/notices.tsx'
import { hrefOf, navigate, parseLocation, useLocation, type Location, type ScreenProps } from './router.ts'
import { SessionEnding } from './screens/sign-in/session-ending.tsx'
import { SignIn } from './screens/sign-in/sign-in.tsx'
import { UserMenu } from './screens/sign-in/user-menu.tsx'
import { useStore } from './store.ts'

interface Screen {
  /** First part of the path, and name of the folder in `screens`. */
  name: string
  title: string
  component: LazyComponent<ScreenProps>
}

/**
 * Every screen, in the order of the navigation; each is loaded when it is first shown. To add one:
 *
 * 1. `screens/<name>/index.tsx` with the component as its default export;
 * 2. its entry here;
 * 3. `tests/web/<name>.test.ts`.
 *
 * `app.test.ts` fails while one of them is missing. `frame.test.ts` and `accessibility.test.ts` find the screen themselves.
 */
const screens: readonly Screen[] = [
  { name: 'history', title: 'History', component: lazy(() => import('./screens/history/index.tsx')) },
  { name: 'actions', title: 'Actions', component: lazy(() => import('./screens/actions/index.tsx')) },
  { name: 'rules', title: 'Rules', component: lazy(() => import('./screens/rules/index.tsx')) },
  { name: 'triggers', title: 'Triggers', component: lazy(() => import('./screens/triggers/index.tsx')) },
  { name: 'webhooks', title: 'Webhooks', component: lazy(() => import('./screens/webhooks/index.tsx')) },
  { name: 'traces', title: 'Traces', component: lazy(() => import('./screens/traces/index.tsx')) },
  { name: 'access', title: 'Access', component: lazy(() => import('./screens/access/index.tsx')) },
  { name: 'status', title: 'Status', component: lazy(() => import('./screens/status/index.tsx')) },
]

// While the server is asked who is calling.
screenOf(parseLocation(location.hash))?.component.preload()

export function App(): JSX.Element {
  const { phase, user, isHidden, isRenewing } = useStore(session.state)
  const [failure, setFailure] = useState<unknown>()
  const resume = (): void => {
    session.resume().then(() => setFailure(undefined), setFailure)
  }
  useEffect(resume, [])
  if (failure !== undefined) return <Failure error={failure} onRetry={resume} />
  if (phase === 'unknown') return <p class="loading">Checking the session…</p>
  return (
    <>
      {user !== undefined && <Frame isHidden={isHidden} />}
      {(phase === 'signed_out' || isRenewing) && <SignIn />}
      <Notices />
    </>
  )
}

/** @param props.isHidden it keeps its content, which is not to be seen */
function Frame({ isHidden }: { isHidden: boolean }): JSX.Element {
  const location = useLocation()
  const screen = screenOf(location)
  const main = useRef<HTMLElement>(null)
  useEffect(() => {
    if (location.path.length === 0) navigate(hrefOf(['history']), { replace: true })
  }, [location.path.length])
  useEffect(() => {
    document.title = screen === undefined ? 'svc' : `${screen.title} · svc`
  }, [screen])
  return (
    <div class="frame" data-hidden={isHidden ? '' : undefined}>
      <a
        class="skip"
        href="#content"
        onClick={(event) => {
          // The address is what is shown, and must not become that of this link.
          event.preventDefault()
          main.current?.focus()
        }}
      >
        Skip to content
      </a>
      <header class="bar">
        <a class="brand" href={hrefOf(['history'])}>
          svc
        </a>
        <nav class="tabs-main" aria-label="Screens">
          {screens.map(({ name, title }) => (
            <a key={name} href={hrefOf([name])} aria-current={name === screen?.name ? 'page' : undefined}>
              {title}
            </a>
          ))}
        </nav>
        <LiveMark />
        <UserMenu />
      </header>
      <SessionEnding />
      <main id="content" ref={main} tabIndex={-1}>
        {screen === undefined ? (
          <Missing location={location} />
        ) : (
          <screen.component key={screen.name} path={location.path.slice(1)} query={location.query} />
        )}
      </main>
    </div>
  )
}

function screenOf({ path: [first = 'history'] }: Location): Screen | undefined {
  return screens.find(({ name }) => name === first)
}

function Missing({ location }: { location: Location }): JSX.Element {
  return (
    <div class="page">
      <h1>Page not found</h1>
      <p>
        No screen has the address <code>{hrefOf(location.path)}</code>.{' '}
        <a href={hrefOf(['history'])}>Open the history</a>
      </p>
    </div>
  )
}
