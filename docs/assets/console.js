// The button that copies a block of commands copies the commands, without prompts and what they print.
document.addEventListener(
  "click",
  (event) => {
    const button = event.target instanceof Element ? event.target.closest("[data-clipboard-target]") : null;
    const block = button?.closest(".language-console");
    if (!block) return;
    const commands = [];
    let goesOn = false;
    for (const line of (block.querySelector("code")?.textContent ?? "").split("\n")) {
      if (goesOn || line.startsWith("$ ")) commands.push(goesOn ? line : line.slice(2));
      goesOn = (goesOn || line.startsWith("$ ")) && line.endsWith("\\");
    }
    button.setAttribute("data-clipboard-text", commands.join("\n"));
  },
  true,
);

// The search completes every word of a query: the "a" of "what is a gap" would find each title that begins with A.
const SMALL = new Set("a an and are can do does for how i if in is it my of on or the to what when where why with".split(" "));
const QUERY = 2;

for (const kind of new Set([window.Worker, window.IFrameWorker])) {
  if (!kind) continue;
  const { postMessage } = kind.prototype;
  kind.prototype.postMessage = function (message, ...more) {
    if (message?.type === QUERY && typeof message.data === "string") {
      const kept = message.data.split(/\s+/).filter((word) => !SMALL.has(word.toLowerCase()));
      if (kept.some(Boolean)) message = { ...message, data: kept.join(" ") };
    }
    return postMessage.call(this, message, ...more);
  };
}

// What is wider than its place can be scrolled with the keyboard, too: tables, which the theme wraps when it starts, and code.
const widths = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (target.scrollWidth > target.clientWidth) target.setAttribute("tabindex", "0");
    else target.removeAttribute("tabindex");
  }
});
const observe = () => {
  for (const wide of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code")) widths.observe(wide);
};
observe();
new MutationObserver(observe).observe(document.body, { childList: true, subtree: true });
