/** The page: its frame, and the current view. */

import { effect } from "@preact/signals";
import { render } from "preact";
import "../style.css";
import { startClock } from "./clock";
import { signedOut } from "./contact";
import { Header } from "./Header";
import { keep, recognise } from "./sync";
import { useKeys } from "./keys";
import { listen } from "./live";
import { Confirm } from "./parts/Confirm";
import { Empty } from "./parts/Empty";
import { Toasts } from "./parts/Toast";
import { followAddress, type Route, route } from "./route";
import { needs } from "./state";
import { followTheme } from "./theme";
import { Agent } from "./views/Agent";
import { Alerts } from "./views/Alerts";
import { Audit } from "./views/Audit";
import { Breakers } from "./views/Breakers";
import { Fleet } from "./views/Fleet";
import { Help, helping } from "./views/Help";
import { Hubs } from "./views/Hubs";
import { Recovery } from "./views/Recovery";
import { Sessions } from "./views/Sessions";
import { SignedOut } from "./views/SignedOut";

function Page() {
  useKeys({ "?": () => void (helping.value = true) });
  if (signedOut.value) return <SignedOut />;
  return (
    <>
      <Header />
      <main>
        <View route={route.value} />
      </main>
      <Confirm />
      <Help />
      <Toasts />
    </>
  );
}

function View({ route }: { route: Route }) {
  switch (route.page) {
    case "fleet":
      return <Fleet />;
    case "agent":
      return <Agent key={route.id} id={route.id} />;
    case "breakers":
      return <Breakers />;
    case "recovery":
      return <Recovery />;
    case "alerts":
      return <Alerts />;
    case "audit":
      return <Audit />;
    case "sessions":
      return <Sessions />;
    case "hubs":
      return <Hubs />;
    case "unknown":
      return (
        <Empty title="There is nothing here">
          <p>
            <a href="#/">To all agents</a>
          </p>
        </Empty>
      );
  }
}

effect(() => {
  const count = needs.value.length;
  document.title = count ? `(${count}) lifesigns` : "lifesigns";
});
followTheme();
followAddress();
startClock();
const root = document.getElementById("app");
if (root) {
  root.replaceChildren();
  render(<Page />, root);
}
void begin();

/** A browser without a session learns that from one request: many refused requests would look like guessing. */
async function begin(): Promise<void> {
  await recognise();
  if (signedOut.value) return;
  void listen();
  keep();
}
