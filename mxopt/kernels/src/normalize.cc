// Pixels of 8 bits a colour as planes of float32, with the arithmetic of MXNet's operators.
#include <cstdint>

// `pixels` holds red, green and blue of each of `count` pixels; `planes` gets all reds, then all
// greens, then all blues: (x / 255 - mean) / deviation.
extern "C" void mxopt_normalize(const std::uint8_t* __restrict pixels, std::int64_t count,
                                const float* mean, const float* deviation,
                                float* __restrict planes) {
  const float m0 = mean[0], m1 = mean[1], m2 = mean[2];
  const float d0 = deviation[0], d1 = deviation[1], d2 = deviation[2];
  float *const red = planes, *const green = planes + count, *const blue = planes + 2 * count;
  for (std::int64_t i = 0; i < count; ++i) {
    red[i] = (pixels[3 * i] / 255.0f - m0) / d0;
    green[i] = (pixels[3 * i + 1] / 255.0f - m1) / d1;
    blue[i] = (pixels[3 * i + 2] / 255.0f - m2) / d2;
  }
}
