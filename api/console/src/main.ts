import { mount } from "svelte";

import App from "./App.svelte";
import "./app.css";
import { settings } from "./lib/settings.svelte";

const target = document.getElementById("app");
if (target === null) throw new Error("index.html has an element #app");
settings.apply();
mount(App, { target });
