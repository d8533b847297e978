// The anatomy of the folder: a square a file, told about when it is pointed at.
import { at, h, put } from "./dom.js";
import { bytes, clock, number, plural } from "./words.js";

const SHOWN = 400;
const READS = { yes: "A restart reads it.", maybe: "A restart may read it.", no: "A restart does not read it." };

export function drawFiles(anatomy) {
  const told = at("file-told");
  const tell = (folder, file) => {
    put(told, h("code", {}, folder ? `${folder}/${file.name}` : file.name), h("span", { class: "told-what" }, file.what),
      h("span", { class: "told-reads", data: { reads: file.reads } }, READS[file.reads]), h("span", {}, file.why),
      h("span", { class: "dim" }, `${bytes(file.size)}${file.mtime_ms ? `, ${clock(file.mtime_ms)}` : ""}`));
  };
  put(told, h("span", { class: "dim" }, `${plural(anatomy.files, "file")}, ${bytes(anatomy.bytes)}. A restart reads ${number(anatomy.read_files)} of them, ${bytes(anatomy.read_bytes)}.`,
    anatomy.left_out ? ` ${number(anatomy.left_out)} are counted and not drawn.` : ""));
  let first = true;
  put(at("anatomy"), anatomy.folders.filter((f) => f.count).map((folder) => {
    const tiles = folder.files.slice(0, SHOWN).map((file) => {
      const tile = h("button", {
        type: "button", class: "tile", data: { reads: file.reads }, tabindex: first ? 0 : -1,
        "aria-label": `${folder.path ? `${folder.path}/` : ""}${file.name}. ${file.what} ${READS[file.reads]}`,
        onmouseenter: () => tell(folder.path, file), onfocus: () => tell(folder.path, file),
      });
      first = false;
      tile.style.setProperty("--size", String(Math.min(Math.max(Math.log2(file.size + 1), 4), 26)));
      return tile;
    });
    return h("div", { class: "folder" }, h("div", { class: "folder-name" }, h("code", {}, folder.path || "./"), h("span", { class: "sub" }, `${plural(folder.count, "file")}, ${bytes(folder.bytes)}`)),
      h("div", { class: "tiles" }, tiles, folder.count > tiles.length ? h("span", { class: "sub" }, `and ${number(folder.count - tiles.length)} more`) : null));
  }));
}

at("anatomy").addEventListener("keydown", (event) => {
  const tiles = [...at("anatomy").querySelectorAll("button.tile")];
  const here = tiles.indexOf(document.activeElement);
  if (here < 0) return;
  const step = { ArrowRight: 1, ArrowLeft: -1, Home: -here, End: tiles.length - 1 - here }[event.key];
  let next = step === undefined ? null : tiles[here + step];
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    const folders = [...at("anatomy").querySelectorAll(".tiles")].filter((f) => f.querySelector("button"));
    const mine = folders.indexOf(document.activeElement.parentElement);
    const other = folders[mine + (event.key === "ArrowDown" ? 1 : -1)];
    next = other ? other.querySelector("button") : null;
  }
  if (!next) return;
  event.preventDefault();
  document.activeElement.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
});
