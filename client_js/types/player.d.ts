/** What `realtime-tts/player` exports. */

export { Player } from "./api.js";
export type { Playback, PlaybackState, PlaybackStats, PlayerOptions } from "./api.js";
