/** Ending a session. The hub does it itself, so its answer is the confirmation. */

import { tried } from "../../acts";
import { inPath, remove, signedOut } from "../../api";
import { confirm } from "../../parts/Confirm";
import { toast } from "../../parts/Toast";
import type { SessionView } from "#types";

export async function end({ id, name, address, own }: SessionView): Promise<void> {
  const answer = await confirm({
    title: own ? "Sign out of this browser?" : `End the session of ${name}?`,
    text: own
      ? "Nothing happens to other browsers."
      : `The browser${address ? ` at ${address}` : ""} is signed out at once. Whoever has the token can sign in anew; to keep them out, revoke the token.`,
    act: own ? "Sign out" : "End it",
    danger: !own,
  });
  if (!answer) return;
  const say = toast("waiting", "Ending the session …");
  await tried(say, async () => {
    await remove(`/api/v1/sessions/${inPath(id)}`);
    say("done", `The session of ${name} is over.`);
    if (own) signedOut.value = true;
  });
}
