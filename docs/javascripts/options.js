// Browsers break a line after any hyphen: an option such as --execute stays in one piece.
for (const code of document.querySelectorAll(".md-content :not(pre) > code")) {
  if (code.children.length > 0 || !/(^|[\s=(])-/.test(code.textContent)) continue;
  const parts = code.textContent.split(/(\s+)/).map((part) => {
    if (!/^[=(]?--?[a-z]/.test(part) || part.length > 32) return part;
    const whole = document.createElement("span");
    whole.className = "fm-option";
    whole.textContent = part;
    return whole;
  });
  code.replaceChildren(...parts);
}
