/** Nobody is signed in: explains how to sign in. */

export function SignedOut() {
  return (
    <main class="signed-out">
      <h1>lifesigns</h1>
      <h2>You are not signed in</h2>
      <p>Where the hub runs, or wherever you have a token for it, make a link that works once:</p>
      <pre>
        <code>lifesigns open</code>
      </pre>
      <p>Open that link in this browser. It signs you in for as long as you look in every half day.</p>
      <button type="button" onClick={() => location.reload()}>
        Try again
      </button>
    </main>
  );
}
