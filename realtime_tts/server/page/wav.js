/** A WAV file of 16 bit mono PCM. */

/**
 * @param {Uint8Array[]} packets little-endian
 * @param {number} rate
 * @returns {Uint8Array[]} the parts of the file
 */
export function wav(packets, rate) {
  const size = packets.reduce((sum, packet) => sum + packet.length, 0);
  const header = new DataView(new ArrayBuffer(44));
  const text = (/** @type {number} */ at, /** @type {string} */ word) =>
    [...word].forEach((char, index) => header.setUint8(at + index, char.charCodeAt(0)));
  text(0, "RIFF");
  header.setUint32(4, 36 + size, true);
  text(8, "WAVEfmt ");
  header.setUint32(16, 16, true);
  header.setUint16(20, 1, true); // PCM
  header.setUint16(22, 1, true); // mono
  header.setUint32(24, rate, true);
  header.setUint32(28, rate * 2, true);
  header.setUint16(32, 2, true);
  header.setUint16(34, 16, true);
  text(36, "data");
  header.setUint32(40, size, true);
  return [new Uint8Array(header.buffer), ...packets];
}
