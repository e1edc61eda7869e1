#include "reports/sample_files.hpp"

namespace slacktier {

std::optional<NpyArray> samples_of(const std::string& result_file, const SampleFile& samples) {
  const std::filesystem::path file(result_file), beside = file.parent_path();
  for (const std::filesystem::path& folder : {beside / (file.stem().string() + "-samples"), beside})
    if (std::filesystem::exists(folder / samples.file)) return read_npy(folder, samples);
  return {};
}

}  // namespace slacktier
