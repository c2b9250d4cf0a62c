/** What an admin can do with a hub. The hub that judges does it, so its answer is the confirmation. */

import { tried } from "../../acts";
import { inPath, post, remove } from "../../api";
import { confirm } from "../../parts/Confirm";
import { toast } from "../../parts/Toast";
import type { HubView } from "#types";

export async function drain({ name, state }: HubView): Promise<void> {
  const answer = await confirm({
    title: `Drain ${name}?`,
    text:
      state === "judges"
        ? "Another hub goes on within about a second, and nothing is lost. This one rests until it is started anew or resumed."
        : "It takes over only if no other hub does, until it is started anew or resumed.",
    act: "Drain",
  });
  if (!answer) return;
  const say = toast("waiting", `Draining ${name} …`);
  await tried(say, async () => {
    await post(`/api/v1/hubs/${inPath(name)}/drain`);
    say("done", `${name} is drained: it may be stopped.`);
  });
}

export async function resume({ name }: HubView): Promise<void> {
  const say = toast("waiting", `Resuming ${name} …`);
  await tried(say, async () => {
    await remove(`/api/v1/hubs/${inPath(name)}/drain`);
    say("done", `${name} stands by like the others.`);
  });
}

export async function forget({ name }: HubView): Promise<void> {
  const answer = await confirm({
    title: `Forget ${name}?`,
    text: "It is lost, and the alert about it ends. If it comes back it announces itself again.",
    act: "Forget it",
    danger: true,
  });
  if (!answer) return;
  const say = toast("waiting", `Forgetting ${name} …`);
  await tried(say, async () => {
    await remove(`/api/v1/hubs/${inPath(name)}`);
    say("done", `${name} is forgotten.`);
  });
}
