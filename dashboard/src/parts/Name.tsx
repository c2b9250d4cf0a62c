/**
 * A text from outside: an id, a task, a host. It may be long, run from right to left or contain anything, so it is isolated
 * from the text around it, cut off where there is no room, and complete in its title.
 */

export function Name({ text, href }: { text: string; href?: string }) {
  if (href === undefined) {
    return (
      <bdi class="name" title={text}>
        {text}
      </bdi>
    );
  }
  return (
    <a class="name" href={href} title={text}>
      <bdi>{text}</bdi>
    </a>
  );
}
